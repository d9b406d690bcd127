"""Real vLLM on the CPU, in a process of its own, killed in the middle of a job."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipeline.dataset import open_dataset
from schemas.caches import CacheCounts

pytestmark = pytest.mark.vllm

SCRIPT = Path(__file__).with_name("vllm_job.py")
ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 580


def run(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


def engines(folder: Path) -> list[list[int]]:
    lines = (folder / "engines").read_text().splitlines()
    return [[int(pid) for pid in line.split()] for line in lines]


def gone(pids: list[int]) -> bool:
    until = time.monotonic() + 15
    while any(psutil.pid_exists(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def test_check_4_the_job_recovers_when_its_engine_is_killed(tmp_path: Path) -> None:
    ended = run(tmp_path, "engine")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "rebuilding it, 1 of at most 3" in ended.stderr
    first, second = engines(tmp_path)
    assert set(first).isdisjoint(second)
    assert gone(first + second)
    dataset = open_dataset(str(tmp_path / "dataset"))
    samples = {row["sample_id"] for row in dataset.table("annotations").to_pylist()}
    assert len(samples) == 18
    assert dataset.table("rejects").num_rows == 0
    units = [record.worker.caches for record in dataset.commits()]
    caches = sum(units, CacheCounts(0, 0, 0, 0))
    # Three questions each about six screens, told from another process; some were asked twice.
    assert caches.processor_queries is not None and caches.processor_queries >= 18
    assert caches.processor_share == pytest.approx(2 / 3, abs=0.2)
    assert caches.encoder_share == pytest.approx(2 / 3, abs=0.2)


def test_no_engine_outlives_a_killed_job(tmp_path: Path) -> None:
    ended = run(tmp_path, "job")
    assert ended.returncode == -signal.SIGKILL
    (pids,) = engines(tmp_path)
    assert len(pids) >= 2
    assert gone(pids)
