"""A job whose engine takes its time, run as a process of its own to be stopped or killed.

Usage: python slow_job.py FOLDER SECONDS_PER_COLLECT [starts-forever]; exits with the job's code.
"""

import logging
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from job_fixtures import job, oracle, shots

from pipeline.attend import end_process
from pipeline.run import run_job
from schemas.records import Answer
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

COUNT = 10


class SlowEngine(ScriptedEngine):
    """Sleeps before it gives answers."""

    def __init__(self, seconds: float) -> None:
        super().__init__(oracle(shots(COUNT)), ScriptedLatency(hold=1, per_collect=2), 4)
        self._seconds = seconds

    def collect(self) -> list[Answer]:
        time.sleep(self._seconds)
        return super().collect()


def start_forever() -> SlowEngine:
    """An engine start that never comes to an end."""
    (Path(sys.argv[1]) / "starting").touch()
    time.sleep(3600)
    raise AssertionError


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    folder = Path(sys.argv[1])
    config = job(folder, folder / "a.tar")
    factory = partial(SlowEngine, float(sys.argv[2]))
    outcome = run_job(config, engine_factory=start_forever if len(sys.argv) > 3 else factory)
    end_process(outcome.exit_code)
    sys.exit(outcome.exit_code)
