"""Several processes over one plan end like one process that was left alone."""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard
from worker_job import COUNT

from pipeline import workers as workers_module
from pipeline.cli import workers as cli_workers
from pipeline.cli.workers import worker_command, workers_of
from pipeline.config import JobConfig, RunConfig
from pipeline.dataset import open_dataset
from pipeline.devices import VISIBLE, visible_devices, worker_environments
from pipeline.partition import Partition
from pipeline.run import run_job
from pipeline.workers import Command
from schemas.errors import ConfigError, EngineError, StorageError

SCRIPT = Path(__file__).with_name("worker_job.py")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobConfig:
    monkeypatch.setattr(cli_workers, "_POLL_SECONDS", 0.2)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv(VISIBLE, "")
    run = RunConfig(heartbeat_seconds=0.5, grace_seconds=5)
    return job(tmp_path, write_shard(tmp_path / "a.tar", shots(COUNT)), run=run)


def saying(code: str) -> Command:
    """Workers that are a line of Python."""

    def command(partition: Partition, _: str) -> Sequence[str]:
        return [sys.executable, "-c", code, str(partition)]

    return command


def rows(dataset: str) -> list[str]:
    tables = [open_dataset(dataset).table(n) for n in ("annotations", "screens", "rejects")]
    return sorted(str(row) for table in tables for row in table.to_pylist())


def test_two_workers_of_which_one_is_killed_make_the_dataset_of_one(
    config: JobConfig, tmp_path: Path
) -> None:
    def command(partition: Partition, _: str) -> Sequence[str]:
        return [sys.executable, str(SCRIPT), str(tmp_path), str(partition), "0.01", "die-once"]

    outcome = run_job(config, workers=workers_of(config, 2, command))
    assert outcome.exit_code == 0
    assert (tmp_path / "died").exists()
    assert outcome.report.figures.stats.workers == 3  # two, and the one that followed the dead one
    assert outcome.report.figures.counts.screens == COUNT
    assert not [p for p in psutil.Process().children(recursive=True) if "worker_job" in cmd(p)]
    alone = job(tmp_path / "alone", tmp_path / "a.tar")
    (tmp_path / "alone").mkdir()
    run_job(alone, engine_factory=scripted(oracle(shots(COUNT))))
    assert rows(config.output.dataset) == rows(alone.output.dataset)
    again = run_job(config, workers=workers_of(config, 2, saying("raise SystemExit(9)")))
    assert again.exit_code == 0


def cmd(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.mark.parametrize(("code", "kind"), [(3, EngineError), (2, ConfigError), (4, StorageError)])
def test_workers_that_fail_are_restarted_so_often_and_the_worst_tells_why(
    config: JobConfig, tmp_path: Path, code: int, kind: type[Exception]
) -> None:
    note = tmp_path / "starts"
    program = (
        f"import sys; open({str(note)!r}, 'a').write('x'); print('sin memoria'); sys.exit({code})"
    )
    with pytest.raises(kind, match="2 of 2 workers failed") as caught:
        run_job(config, workers=workers_of(config, 2, saying(program)))
    assert "| sin memoria" in str(caught.value)
    once = 1 if code == 2 else 1 + workers_module.MAX_RESTARTS
    assert len(note.read_text()) == 2 * once


def test_a_signal_reaches_every_worker_and_all_are_reaped(
    config: JobConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_LAST_WAIT", 0.0)
    program = (
        "import signal, sys, time\n"
        f"here = {str(tmp_path)!r} + '/worker-' + sys.argv[1][0]\n"
        "signal.signal(signal.SIGTERM, lambda *_: open(here, 'a').write('t'))\n"
        "open(here, 'a').write('s')\n"
        "until = time.time() + 60\n"
        "while time.time() < until: time.sleep(0.05)\n"
    )
    marks = [tmp_path / "worker-1", tmp_path / "worker-2"]

    def stop() -> None:
        until = time.monotonic() + 60
        while not all(mark.exists() for mark in marks) and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    config = config.model_copy(update={"run": RunConfig(grace_seconds=0.5)})
    threading.Thread(target=stop).start()
    outcome = run_job(config, workers=workers_of(config, 2, saying(program)))
    assert outcome.exit_code == 143
    assert [mark.read_text()[:2] for mark in marks] == ["st", "st"]
    assert not [p for p in psutil.Process().children(recursive=True) if "worker-" in cmd(p)]


def test_b090_one_copy_of_the_model_a_device_or_refused_with_advice(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert visible_devices({}, tmp_path) == ["0", "1", "10"]
    assert visible_devices({VISIBLE: "GPU-a, GPU-b"}, tmp_path) == ["GPU-a", "GPU-b"]
    assert visible_devices({VISIBLE: ""}, tmp_path) == []
    shared = worker_environments(2, ["4", "5", "6", "7"], per_worker=2)
    assert [one[VISIBLE] for one in shared] == ["4,5", "6,7"]
    with pytest.raises(ConfigError, match="use at most --workers 2"):
        worker_environments(3, ["0", "1"])
    with pytest.raises(ConfigError, match="smaller tensor_parallel_size"):
        worker_environments(2, ["0"], per_worker=2)


def test_cores_are_shared_where_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert worker_environments(3, [], cores=16) == [{"OMP_NUM_THREADS": "5"}] * 3
    assert worker_environments(4, [], cores=2) == [{"OMP_NUM_THREADS": "1"}] * 4


def test_a_worker_is_the_same_job_with_a_partition() -> None:
    command = worker_command(Path("job.toml"), ["run.grace_seconds=5"], ["--runner=X"])
    assert list(command(Partition(2, 3), "/datos/a@v2"))[1:] == [
        "-m", "pipeline.cli.app", "run", "job.toml", "--partition", "2/3",
        "--set", "run.grace_seconds=5", "--set", "output.dataset=/datos/a@v2", "--", "--runner=X",
    ]  # fmt: skip
