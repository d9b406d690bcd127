"""A job that is stopped or killed goes on and ends like one that was left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from job_fixtures import shots, write_shard
from slow_job import COUNT

from pipeline.dataset import open_dataset

SCRIPT = Path(__file__).with_name("slow_job.py")
ROOT = Path(__file__).resolve().parents[2]
SLOW, FAST = "0.15", "0"
DEADLINE = 120


def start(folder: Path, seconds: str, *more: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    if not (folder / "a.tar").exists():
        write_shard(folder / "a.tar", shots(COUNT))
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), seconds, *more],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def finish(folder: Path) -> int:
    process = start(folder, FAST)
    process.communicate(timeout=DEADLINE)
    return process.returncode


def wait_for_units(folder: Path, count: int) -> None:
    commits = folder / "dataset" / "_commits"
    until = time.monotonic() + DEADLINE
    while not commits.is_dir() or len(list(commits.glob("*.json"))) < count:
        assert time.monotonic() < until, f"no {count} units within {DEADLINE} s"
        time.sleep(0.02)


def rows(folder: Path) -> dict[str, list[str]]:
    dataset = open_dataset(str(folder / "dataset"))
    tables = ("annotations", "screens", "rejects")
    dropped = ["unit_id", "shard"]
    return {
        name: sorted(map(str, dataset.table(name).drop_columns(dropped).to_pylist()))
        for name in tables
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert finish(folder) == 0
    return rows(folder)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_after_a_clean_commit(
    tmp_path: Path, undisturbed: dict[str, list[str]], number: signal.Signals, code: int
) -> None:
    process = start(tmp_path, SLOW)
    wait_for_units(tmp_path, 1)
    process.send_signal(number)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == code
    assert "finishing the units in work" in said
    done = len(list((tmp_path / "dataset" / "_commits").glob("*.json")))
    assert 1 <= done < COUNT // 2
    assert (tmp_path / "dataset" / "report.json").exists()
    assert finish(tmp_path) == 0
    assert rows(tmp_path) == undisturbed


def test_a_kill_costs_only_the_units_in_work(
    tmp_path: Path, undisturbed: dict[str, list[str]]
) -> None:
    for units in (1, 3):
        process = start(tmp_path, SLOW)
        wait_for_units(tmp_path, units)
        process.kill()
        process.communicate(timeout=DEADLINE)
        assert process.returncode == -signal.SIGKILL
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "dataset" / "_commits").iterdir()}
    assert finish(tmp_path) == 0
    assert rows(tmp_path) == undisturbed
    for path, when in kept.items():
        assert path.stat().st_mtime_ns == when, f"{path.name} was done again"


def test_a_signal_while_the_engine_starts_waits_for_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, FAST, "starts-forever")
    until = time.monotonic() + DEADLINE
    while not (tmp_path / "starting").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 143, said
    assert (tmp_path / "dataset" / "report.json").exists()
    heartbeat = json.loads((tmp_path / "dataset" / "_run" / "heartbeat.json").read_text())
    assert (heartbeat["phase"], heartbeat["exit_code"]) == ("ended", 143)
