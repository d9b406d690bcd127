"""datatrove's InferenceRunner, in an environment of its own.

It is told of a server that is there already (`server_type="endpoint"`): its `vllm` type starts
`vllm serve` with the same options each time, and posts to it by the same code. Payloads are in
memory before the clock starts, as shared context, so that no image is written with the answers,
which its JsonlWriter does. It keeps only the first choice of a completion: n answers are n
requests at once, with the seeds that vLLM gives the n choices of one. Concurrency is its default.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from functools import partial
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.inference.run_inference import InferenceConfig, InferenceRunner
from datatrove.pipeline.writers import JsonlWriter
from peer_protocol import Turn, forget, serve, write_answers


async def ask(document: Document, generate: object, bodies: dict[str, dict]) -> list[dict]:
    body = bodies[document.id]
    count = body.get("n", 1)
    alone = {name: value for name, value in body.items() if name not in {"n", "seed"}}
    seeds = [{"seed": body["seed"] + i} if "seed" in body else {} for i in range(count)]
    said = await asyncio.gather(*(generate({**alone, **seed}) for seed in seeds))
    return [{"text": one.text, "tokens": one.usage["completion_tokens"]} for one in said]


def one_round(model: str, url: str, turn: Turn) -> float:
    bodies = turn.bodies()
    documents = [Document(text=request_id, id=request_id) for request_id in bodies]
    forget(url)
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        runner = InferenceRunner(
            rollout_fn=ask,
            config=InferenceConfig(
                server_type="endpoint", endpoint_url=url, model_name_or_path=model
            ),
            output_writer=JsonlWriter(folder, output_filename="out.jsonl", compression=None),
            shared_context={"bodies": bodies},
        )
        runner.run(documents)
        seconds = time.monotonic() - started
        lines = Path(folder, "out.jsonl").read_text(encoding="utf-8").splitlines()
    said = [json.loads(line) for line in lines]
    answers = {one["id"]: one["metadata"]["rollout_results"][0] for one in said}
    texts = {key: [one["text"] for one in found] for key, found in answers.items()}
    tokens = sum(one["tokens"] for found in answers.values() for one in found)
    write_answers(turn.answers, texts, tokens)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--url", required=True)
    given = parser.parse_args()
    serve(0.0, partial(one_round, given.model, given.url))
