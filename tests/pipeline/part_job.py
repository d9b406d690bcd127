"""Stands in for `pantalla run JOB [--partition i/n]` with a scripted engine, for schedulers.

JOB is any file beside the shard `a.tar` of `write_shard(shots(COUNT))`.
"""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from job_fixtures import job
from slow_job import SlowEngine

from pipeline.partition import parse_partition
from pipeline.run import run_job

if __name__ == "__main__":
    verb, place, *options = sys.argv[1:]
    assert verb == "run"
    folder = Path(place).resolve().parent
    part = parse_partition(options[1]) if options[:1] == ["--partition"] else None
    engine = partial(SlowEngine, 0.02)
    outcome = run_job(job(folder, folder / "a.tar"), engine_factory=engine, partition=part)
    sys.exit(outcome.exit_code)
