"""`vllm run-batch`, in this environment: its own function, on an engine that is kept.

The command starts an engine each time; here the engine is built as the command builds it, and its
`run_batch` is called once a round, so that time with and without the start can be told apart. The
input file is written before the clock starts; reading it and writing the output belong to it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from peer_protocol import CACHES, Turn, Wire, write_answers


def write_batch(turn: Turn, model: str) -> str:
    path = turn.answers.with_suffix(".batch.jsonl")
    with path.open("w", encoding="utf-8") as file:
        for request_id, body in turn.bodies().items():
            line = {"custom_id": request_id, "method": "POST", "url": "/v1/chat/completions"}
            print(json.dumps({**line, "body": {**body, "model": model}}), file=file)
    return str(path)


def read_batch(path: str, turn: Turn) -> None:
    texts, tokens = {}, 0
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        for line in file:
            said = json.loads(line)
            if said["error"] is not None:
                raise SystemExit(f"{said['custom_id']}: {said['error']}")
            body = said["response"]["body"]
            texts[said["custom_id"]] = [choice["message"]["content"] for choice in body["choices"]]
            tokens += body["usage"]["completion_tokens"]
    write_answers(turn.answers, texts, tokens)


async def rounds() -> None:
    wire, started = Wire(), time.monotonic()
    from vllm.entrypoints.launchers.api_server.entry import build_async_engine_client
    from vllm.entrypoints.launchers.run_batch import make_arg_parser, run_batch
    from vllm.usage.usage_lib import UsageContext
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    words = [*sys.argv[1:], "-i", "none", "-o", "none"]
    args = make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    context = UsageContext.OPENAI_BATCH_RUNNER
    async with build_async_engine_client(args, usage_context=context) as engine:
        wire.say(start=time.monotonic() - started)
        turns = wire.turns()
        while turn := await asyncio.to_thread(next, turns, None):
            args.input_file = write_batch(turn, args.model)
            args.output_file = f"{args.input_file}.out"
            for name in CACHES:
                await getattr(engine, name)()
            began = time.monotonic()
            await run_batch(engine, args)
            seconds = time.monotonic() - began
            read_batch(args.output_file, turn)
            wire.say(seconds=seconds)


def main() -> None:
    asyncio.run(rounds())
