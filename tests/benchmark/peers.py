"""Our job beside others that ask a model about pictures, on the same requests, in turn.

`python -m tests.benchmark.peers [--systems raw job beam datatrove run-batch]
[--workload one eight votes listing] [--screens 48] [--rounds 5] [--json FILE]`. Same checkpoint,
same engine arguments and environment, same prompts, limits, sampling and grammars; caches are
emptied before each round; the first round of each does not count. The systems:

- raw: one call of `LLM.chat`, pixels in memory. The limit.
- job: ours, from the shard to Parquet. It alone reads a shard, decodes, resizes, parses, judges,
  and commits rows.
- beam: Beam's RunInference with its vLLM chat handler, batches of four times as many as the engine
  takes at once (`--beam-batch`): it waits for the slowest of each batch, which smaller ones make
  dearer; beam-default: batches as Beam finds them. datatrove: InferenceRunner with a vLLM server.
  run-batch: `vllm run-batch`. ray: Ray Data LLM. See `peer_*.py` for how each is run.

All peers are given pictures as PNG in data URLs, at the size the model sees, made before the clock
starts: that favours them by the reading and resizing, and costs them the decoding, which is their
way to take pictures. Starts are measured once and told apart; `with start` is what one run of this
size takes from nothing. run-batch and ray start an engine each time, by design.

A system that leaves a request unanswered, or answers otherwise than the first system, stops the
comparison. Figures are printed, nothing else is asserted.

`--engine scripted` puts a stand-in for an engine on a large GPU in the place of vLLM, as fast as
`--speed` screens a second: what is compared then is how well each feeds it. run-batch and ray
start vLLM themselves and are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import platformdirs

from pipeline.bench.systems import composed_requests
from pipeline.bench.workloads import WORKLOADS, suitable, workload_job
from pipeline.config import JobConfig, load_config
from pipeline.model import resolve_model
from tests.benchmark.peer_scripted import SPEEDS, ServiceModel
from tests.benchmark.peer_systems import ALL, SCRIPTED, Starter, System, Work
from tests.benchmark.peer_work import (
    Done,
    check_agreement,
    check_all_answered,
    check_all_differ,
    write_requests,
)
from transforms.engines.sentinel import guard
from transforms.engines.vllm_settings import memory_arguments
from transforms.free_memory import free_memory
from transforms.profiles.load import load_profile

NOWHERE = ('input.shards=["none"]', 'output.dataset="none"')
BATCH_OF_BEAM = 4
USUAL = ("raw", "job", "beam", "beam-default", "datatrove", "run-batch")


@dataclass(frozen=True, slots=True)
class Found:
    """One workload: what every system did in the rounds that count, in the order they were run.

    Attributes:
        agreements: share of greedy answers equal to those of the first system; None = none is.
    """

    workload: str
    requests: int
    starts: Mapping[str, float]
    rounds: Mapping[str, Sequence[Done]]
    agreements: Mapping[str, float | None]

    def ratios(self, name: str, *, start: bool) -> list[float]:
        """Throughput of our job over that of a system, round by round."""
        mine, its = (self.seconds(one, start=start) for one in ("job", name))
        return [b / a for a, b in zip(mine, its, strict=True)]

    def seconds(self, name: str, *, start: bool) -> list[float]:
        """Of every round."""
        once = self.starts[name]
        return [
            done.seconds + (once + done.start_seconds if start else 0.0)
            for done in self.rounds[name]
        ]


def compare(systems: Sequence[System], work: Work, name: str, rounds: int, folder: Path) -> Found:
    """All systems in turn, after a round that does not count.

    Raises:
        UnequalWorkError: if one of them did not do what the first did.
    """
    done: dict[str, list[Done]] = {system.name: [] for system in systems}
    shares: dict[str, list[float | None]] = {system.name: [] for system in systems}
    for turn in range(rounds + 1):
        first: Done | None = None
        for system in systems:
            print(f"{name}: {system.name}, round {turn} of {rounds}", file=sys.stderr, flush=True)
            found = system.run(work, folder / f"{name}-{system.name}-{turn}")
            check_all_answered(system.name, work.requests, found.texts)
            first = first or found
            names = (systems[0].name, system.name)
            share = check_agreement(names, work.requests, first.texts, found.texts)
            if turn:
                done[system.name].append(found)
                shares[system.name].append(share)
    starts = {system.name: system.start_seconds for system in systems}
    agreed = {key: _least(found) for key, found in shares.items()}
    return Found(name, len(work.requests), starts, done, agreed)


def _least(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return min(known) if known else None


WHAT_ONE_REFUSAL_COSTS = {
    "raw": "the whole call",
    "job": "its row, which says why",
    "beam": "its batch, and with it the pipeline unless failures are caught",
    "beam-default": "its batch, and with it the pipeline unless failures are caught",
    "datatrove": "the task, or with skip_bad_requests its document",
    "run-batch": "its line; a line that is no request costs the file; all is written at the end",
    "ray": "the dataset, or with should_continue_on_error its row",
}
"""Read in their sources, at the versions named here."""

HEADINGS = (
    "system", "req/s", "start s", "req/s with start", "ours/it", "of rounds", "with start",
    "cpu s", "tokens", "agrees",
)  # fmt: skip


def table(found: Found) -> Iterator[str]:
    """Medians of the rounds as aligned lines."""
    lines = [HEADINGS, *(_cells(found, name) for name in found.rounds)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for first, *rest in lines:
        numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *numbers])


def _cells(found: Found, name: str) -> tuple[str, ...]:
    rounds, share = found.rounds[name], found.agreements[name]
    seconds, whole = (median(found.seconds(name, start=start)) for start in (False, True))
    ratios = found.ratios(name, start=False)
    return (
        name,
        f"{found.requests / seconds:.2f}",
        f"{whole - seconds:.1f}",
        f"{found.requests / whole:.3f}",
        f"{median(ratios):.2f}",
        f"{min(ratios):.2f}-{max(ratios):.2f}",
        f"{median(found.ratios(name, start=True)):.2f}",
        f"{median(done.cpu_seconds for done in rounds):.1f}",
        f"{median(done.output_tokens for done in rounds):.0f}",
        "-" if share is None else f"{share:.0%}",
    )


def as_json(found: Sequence[Found], config: JobConfig, given: argparse.Namespace) -> dict:
    """Every round, without the texts, and what it was measured on."""
    model = resolve_model(config.model)
    return {
        "engine": given.engine,
        "speed": given.speed if given.engine == "scripted" else None,
        "model": model.name,
        "revision": model.revision,
        "arguments": dict(model.vllm.engine),
        "processors": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "workloads": [
            {
                "workload": one.workload,
                "screens": given.screens,
                "requests": one.requests,
                "starts": dict(one.starts),
                "agreements": dict(one.agreements),
                "ours_over_it": {
                    name: {
                        "steady": median(one.ratios(name, start=False)),
                        "with_start": median(one.ratios(name, start=True)),
                        "rounds": one.ratios(name, start=False),
                    }
                    for name in one.rounds
                },
                "rounds": {
                    name: [
                        {key: value for key, value in asdict(done).items() if key != "texts"}
                        for done in rounds
                    ]
                    for name, rounds in one.rounds.items()
                },
            }
            for one in found
        ],
    }


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", choices=ALL, help="job is always among them")
    parser.add_argument("--workload", nargs="+", choices=[w.name for w in WORKLOADS])
    parser.add_argument("--screens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--config", type=Path, help="a job: its model and sampling are measured")
    parser.add_argument("--engine", choices=["vllm", "scripted"], default="vllm")
    parser.add_argument("--speed", type=float, default=SPEEDS["4b"], help="of the stand-in")
    parser.add_argument("--beam-batch", type=int, help="requests of a batch of the tuned Beam")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def names_of(given: argparse.Namespace) -> list[str]:
    """The systems to compare, the job always among them."""
    usual = SCRIPTED if given.engine == "scripted" else USUAL
    wanted = given.systems or usual
    unfit = set(wanted) - set(SCRIPTED)
    if given.engine == "scripted" and unfit:
        raise SystemExit(f"--engine scripted: {', '.join(sorted(unfit))} start vLLM themselves")
    return [name for name in ALL if name in {*wanted, "job"}]


def main() -> None:
    given = parsed()
    names = names_of(given)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves the blocks that end the peers
    guard()  # ends them where this process is killed
    config = load_config(given.config, NOWHERE if given.config is None else ())
    settings = resolve_model(config.model).vllm
    # What our engine settles by the memory that is free when it starts, settled once for all.
    settled = {**memory_arguments(settings, free_memory()), **settings.engine}
    settings = replace(settings, engine=settled)
    workloads = suitable(load_profile(config.model.profile), tuple(given.workload or ("one",)))
    service = ServiceModel(given.speed) if given.engine == "scripted" else None
    cache = Path(platformdirs.user_cache_dir("pantalla")) / "peers"
    found = []
    with tempfile.TemporaryDirectory(prefix="pantalla-peers-") as place, ExitStack() as ends:
        folder = Path(place)
        at_once = service.seats if service else int(settings.engine.get("max_num_seqs", 256))
        batch = given.beam_batch or BATCH_OF_BEAM * at_once
        starter = Starter(settings, service, ends, folder, cache, batch)
        systems = []
        for name in names:
            print(f"Starting {name}", file=sys.stderr, flush=True)
            systems.append(starter.start(name))
        for workload in workloads:
            job = workload_job(config, workload, given.screens, folder)
            work = Work(job, composed_requests(job), folder / f"{workload.name}.jsonl")
            check_all_differ(work.requests)
            write_requests(work.requests, work.file)
            found.append(compare(systems, work, workload.name, given.rounds, folder))
            print(f"\n{workload.name}: {given.screens} screens, {len(work.requests)} requests")
            print("\n".join(table(found[-1])), flush=True)
    print("\nWhat a request that the engine refuses costs:")
    print("\n".join(f"  {name}: {WHAT_ONE_REFUSAL_COSTS[name]}" for name in names))
    if given.json:
        given.json.write_text(json.dumps(as_json(found, config, given), indent=1))
        print(f"Written: {given.json}")


if __name__ == "__main__":
    main()
