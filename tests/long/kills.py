"""Kill jobs at random instants until 100 kills have hit, and compare what they made.

    python -m tests.long.kills --kills 100 [--seed 7] [--without-s3]

Jobs over three kinds of shards, on a local disk and on a real S3-compatible server: whole ones,
several partitions at once, and twins started by mistake. Processes are killed with SIGKILL at
random instants and started again until the job is done. The dataset must be that of an undisturbed
run, row for row, pass `verify`, and leave no leftovers. Its review rows are then pushed to a double
of Label Studio, by processes that are killed too: each sample is there once.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import faulty_jobs as jobs
from fake_studio import fake_studio
from faulty_jobs import Faulty
from s3_server import S3Server, s3_server

from pipeline.config import OutputConfig


@dataclass
class Kills:
    """How many kills there are to be, and where those that were hit.

    Attributes:
        left: kills still to come.
        hits: kills by kind of job; a process that had ended before does not count.
    """

    left: int
    random: random.Random
    hits: Counter[str] = field(default_factory=Counter)
    starts: int = 0


def killed_job(faulty: Faulty, kills: Kills, kind: str, most: int) -> None:
    """Start and kill a job's processes, `most` times at most, then let it end."""
    life = 2.5
    for _ in range(3 * most):
        if kills.left <= 0 or most <= 0:
            break
        processes = jobs.start(faulty)
        kills.starts += len(processes)
        until = time.monotonic() + kills.random.uniform(0.02, life)
        while time.monotonic() < until and any(process.is_alive() for process in processes):
            time.sleep(0.01)
        alive = [process for process in processes if process.is_alive()]
        for process in alive:
            process.kill()
        codes = jobs.ended(processes)
        hit = codes.count(-9)
        kills.left, most = kills.left - hit, most - hit
        kills.hits[kind] += hit
        bad = [code for code in codes if code not in (0, 1, -9)]
        assert not bad, f"{kind}: a process ended with {bad}"
        if not hit:
            break  # all was done before the kill
    jobs.finish(faulty)
    kills.starts += faulty.partitions * faulty.twins


def one_round(
    number: int, folder: Path, sources: list[str], kills: Kills, server: S3Server | None
) -> None:
    """Three jobs, and a push of each."""
    kinds = {"whole": (1, 1), "partitions": (3, 1), "twins": (1, 2)}
    plain = OutputConfig(dataset=str(folder / "undisturbed"))
    undisturbed = Faulty(jobs.configured(folder, sources, plain))
    if number == 0:
        jobs.finish(undisturbed)
    for name, (partitions, twins) in kinds.items():
        at = f"{name}-{number}"
        output = OutputConfig(dataset=str(folder / at))
        config = jobs.configured(folder, sources, output)
        faulty = Faulty(config, 0.05, partitions, twins)
        killed_job(faulty, kills, name, 8)
        jobs.check(config, undisturbed.config)
        pushed(faulty, kills)
        if kills.left <= 0:
            return
    if server is not None:
        on_s3(number, folder, kills, server)


def on_s3(number: int, folder: Path, kills: Kills, server: S3Server) -> None:
    """The same with input and dataset on S3."""
    place = folder / f"s3-{number}"
    place.mkdir()
    sources = jobs.put_on_s3(server, place)
    for name, seconds in (("calm", 0.0), ("killed", 0.05)):
        output = OutputConfig(
            dataset=f"s3://{jobs.BUCKET}/{name}-{number}", s3_endpoint=server.endpoint
        )
        faulty = Faulty(jobs.configured(place, sources, output), seconds)
        if name == "calm":
            calm = faulty.config
            jobs.finish(faulty)
        else:
            killed_job(faulty, kills, "s3", 8)
            jobs.check(faulty.config, calm)
            pushed(faulty, kills)


def pushed(faulty: Faulty, kills: Kills) -> None:
    """Push with kills, then in peace: each sample is one task with one prediction."""
    with fake_studio() as (url, state):
        push = replace(faulty, push=True, studio=url, partitions=1, twins=1)
        for _ in range(2):
            if kills.left <= 0:
                break
            (process,) = jobs.start(push)
            time.sleep(kills.random.uniform(0.02, 1.0))
            process.kill()
            hit = jobs.ended([process]).count(-9)
            kills.left -= hit
            kills.hits["push"] += hit
        jobs.finish(push)
        assert jobs.check_pushed(faulty.config, state) > 0


def run(count: int, seed: int, *, with_s3: bool) -> Kills:
    """Rounds of jobs until `count` kills have hit.

    Raises:
        AssertionError: if anything was lost, doubled or left behind.
    """
    jobs.prepare()
    kills = Kills(count, random.Random(seed))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pantalla-kills-")))
        server = None
        if with_s3:
            (folder / "s3").mkdir()
            server = stack.enter_context(s3_server(folder / "s3"))
        sources = [f"{path}/" if path.is_dir() else str(path) for path in jobs.make_shards(folder)]
        number = 0
        while kills.left > 0:
            one_round(number, folder, sources, kills, server)
            number += 1
            print(f"round {number}: {dict(kills.hits)}, {kills.starts} starts", flush=True)
    return kills


def main() -> None:
    """Kill, compare, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--without-s3", action="store_true")
    options = parser.parse_args()
    started = time.monotonic()
    kills = run(options.kills, options.seed, with_s3=not options.without_s3)
    print(
        f"{sum(kills.hits.values())} kills in {kills.starts} starts and "
        f"{time.monotonic() - started:.0f} s: {dict(kills.hits)}; every dataset equals the "
        "undisturbed one row for row, verify passes, nothing is left over, each sample is one task"
    )


if __name__ == "__main__":
    main()
