"""Two workers beside one: `python -m tests.benchmark.workers_speed [SECONDS_PER_STEP]`.

Both share out the same job among processes of their own, as `pantalla run --workers N` does, with a
scripted engine that sleeps, as a device computes while the processor does nothing. Prints the wall
time of each, start of the processes included, and how much faster two are.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "pipeline"))

COUNT, PER_STEP, STEP_SECONDS = 80, 4, 1.5


def main(seconds: float) -> None:
    """Run both, one after the other."""
    from job_fixtures import shots, write_shard

    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    walls = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory(prefix="pantalla-workers-") as folder:
            write_shard(Path(folder) / "a.tar", shots(COUNT))
            walls.append(measure(Path(folder), workers, seconds))
            print(f"{workers} worker(s): {walls[-1]:.1f} s, {COUNT / walls[-1]:.2f} screens/s")
    print(f"two workers are {walls[0] / walls[1]:.2f} times as fast as one")


def measure(folder: Path, workers: int, seconds: float) -> float:
    """Wall seconds of the whole job."""
    from job_fixtures import job

    from pipeline.cli.workers import workers_of
    from pipeline.partition import Partition
    from pipeline.run import run_job

    def command(partition: Partition, _: str) -> Sequence[str]:
        own = [sys.executable, "-m", "tests.benchmark.workers_speed", "worker"]
        return [*own, str(folder), str(partition), str(seconds)]

    config = job(folder, folder / "a.tar")
    started = time.monotonic()
    outcome = run_job(config, workers=workers_of(config, workers, command))
    assert outcome.exit_code == 0
    assert outcome.report.figures.counts.screens == COUNT
    return time.monotonic() - started


def work(folder: Path, part: str, seconds: float) -> None:
    """One worker."""
    from job_fixtures import job, oracle, shots

    from pipeline.partition import parse_partition
    from pipeline.run import run_job
    from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

    latency = ScriptedLatency(per_collect=PER_STEP, sleep=seconds)
    factory = partial(ScriptedEngine, oracle(shots(COUNT)), latency, 16)
    config = job(folder, folder / "a.tar")
    outcome = run_job(config, engine_factory=factory, partition=parse_partition(part))
    sys.exit(outcome.exit_code)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(Path(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else STEP_SECONDS)
