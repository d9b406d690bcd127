"""Small versions of `python -m tests.long.kills` and `python -m tests.long.s3_faults`."""

import sys
from pathlib import Path

from s3_server import S3Server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "long"))

import kills
import s3_faults


def test_killed_jobs_and_pushes_make_what_undisturbed_ones_make() -> None:
    done = kills.run(5, seed=3, with_s3=False)
    assert sum(done.hits.values()) >= 5


def test_faults_of_a_store_cost_nothing_but_time(s3: S3Server, tmp_path: Path) -> None:
    outcome = s3_faults.run(s3, tmp_path, 40, seed=3, share=0.2, stall_seconds=0.2)
    assert outcome.faults.total >= 40
    assert len(outcome.faults.done) > 10
