"""Beam's own RunInference with its vLLM chat handler, in this environment.

The handler is Beam's; only `load_model` is changed, so that the server it starts outlives a
pipeline and its start is not paid each round (or, with `--url`, so that it talks to a server that
is there already: the handler itself has no setting for that). All batches run in this process.
Messages are in memory; the clock runs from the first that leaves `Create` to the last answer, so
that neither the runner's own start nor `WriteToText` at its end count, as our job is timed without
a runner too.
`inference_args` are the same for all requests, so that requests cannot have seeds of their own.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from functools import partial

import apache_beam as beam
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference
from apache_beam.ml.inference.vllm_inference import OpenAIChatMessage, VLLMChatModelHandler
from peer_protocol import Turn, forget, serve, write_answers

OPENAI = {"max_tokens", "temperature", "top_p", "presence_penalty", "n"}
"""What the OpenAI client takes by name; the rest is vLLM's and goes into `extra_body`."""

MESSAGES: dict[str, list[OpenAIChatMessage]] = {}
SERVERS: list[object] = []
TIMES: list[float] = []


class Elsewhere:
    """A server that somebody else started, as the handler sees one."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get_server_port(self) -> int:
        return self._port

    def check_connectivity(self) -> None:
        """Nothing to start again."""


class KeptHandler(VLLMChatModelHandler):
    """Beam's handler; its server is started once and kept."""

    def load_model(self) -> object:
        if not SERVERS:
            SERVERS.append(super().load_model())
        return SERVERS[0]

    def share_model_across_processes(self) -> bool:
        return False  # one process: no proxy in between


def message_of(request_id: str) -> tuple[str, list[OpenAIChatMessage]]:
    TIMES.append(time.monotonic())
    return request_id, MESSAGES[request_id]


def line_of(answer: tuple) -> str:
    request_id, result = answer
    said = result.inference
    TIMES.append(time.monotonic())
    texts = [choice.message.content for choice in said.choices]
    return json.dumps({"id": request_id, "texts": texts, "tokens": said.usage.completion_tokens})


def arguments(body: dict) -> dict:
    """A body without messages and seed as `inference_args`."""
    rest = {name: value for name, value in body.items() if name not in {"messages", "seed"}}
    own = {name: rest.pop(name) for name in OPENAI & rest.keys()}
    return {**own, "extra_body": rest}


def one_round(model: str, options: dict, turn: Turn) -> float:
    sizes = {"min_batch_size": turn.batch, "max_batch_size": turn.batch} if turn.batch else {}
    handler = KeptHandler(model, vllm_server_kwargs=options, **sizes)
    bodies = turn.bodies()
    MESSAGES.clear()
    for request_id, body in bodies.items():
        MESSAGES[request_id] = [OpenAIChatMessage(**one) for one in body["messages"]]
    asked = arguments(next(iter(bodies.values())))
    forget(f"http://127.0.0.1:{SERVERS[0].get_server_port()}")
    out = turn.answers.with_suffix(".jsonl")
    TIMES.clear()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        (
            pipeline
            | beam.Create(list(bodies))
            | beam.Map(message_of)
            | RunInference(KeyedModelHandler(handler), inference_args=asked)
            | beam.Map(line_of)
            | beam.io.WriteToText(str(out), num_shards=1, shard_name_template="")
        )
    said = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    texts = {one["id"]: one["texts"] for one in said}
    write_answers(turn.answers, texts, sum(one["tokens"] for one in said))
    return max(TIMES) - min(TIMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--engine", default="{}", help="vLLM's options as JSON, null for a flag")
    parser.add_argument("--url-port", type=int, help="of a server that is there already")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO)  # what the server says, above all why it ended
    options = {"host": "127.0.0.1", **json.loads(given.engine)}
    if given.url_port:
        SERVERS.append(Elsewhere(given.url_port))
    started = time.monotonic()
    KeptHandler(given.model, vllm_server_kwargs=options).load_model()
    ready = time.monotonic() - started
    serve(ready, partial(one_round, given.model, options))
