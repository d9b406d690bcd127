"""One worker of a shared job, with a scripted engine.

Usage: python worker_job.py FOLDER I/N SECONDS [die-once]; exits with the job's exit code.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from job_fixtures import job, oracle, shots

from pipeline.config import RunConfig
from pipeline.observer import Observer
from pipeline.partition import parse_partition
from pipeline.run import run_job
from schemas.commits import CommitRecord
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

COUNT = 12


class DiesOnce(Observer):
    """Kills this process at its first commit, unless it did so before."""

    def __init__(self, folder: Path) -> None:
        self._mark = folder / "died"

    def advance(self, record: CommitRecord) -> None:
        if not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    folder, part, seconds = Path(sys.argv[1]), parse_partition(sys.argv[2]), float(sys.argv[3])
    latency = ScriptedLatency(hold=1, per_collect=3, sleep=seconds)
    factory = partial(ScriptedEngine, oracle(shots(COUNT)), latency, 6)
    config = job(folder, folder / "a.tar", run=RunConfig(heartbeat_seconds=0.5))
    dies = len(sys.argv) > 4 and part.index == 1
    watch = DiesOnce(folder) if dies else Observer()
    outcome = run_job(config, observer=watch, engine_factory=factory, partition=part)
    sys.exit(outcome.exit_code)
