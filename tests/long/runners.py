"""The same job on a Beam runner beyond this process, compared with the local one.

    uv run --with 'apache-beam[dask]==2.77.0' python -m tests.long.runners --runner dask
    python -m tests.long.runners --runner portable

`dask`: a scheduler and two workers as processes of their own; one worker is killed with SIGKILL
when a few units are committed. `portable`: Beam's job service and an external worker pool, the
protocols that Flink and Spark speak. The dataset must be that of a local run, row for row (no
column is left out: see `VOLATILE` in faulty_jobs.py), pass `verify` with every screenshot read
again, and have been made outside this process, whose progress must have seen each unit once.
"""

# ruff: noqa: E402 - run as a script, it has to say first where its neighbours are

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
FOLDERS = (TESTS.parent, TESTS, TESTS / "pipeline", TESTS / "long")
for folder in FOLDERS:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import faulty_jobs as jobs
from faulty_jobs import PacedEngine

from pipeline.config import JobConfig, OutputConfig, RunConfig
from pipeline.observer import Observer
from pipeline.run import run_job
from schemas.commits import CommitRecord

START_SECONDS = 60.0
PACE_SECONDS = 0.3
UNITS_BEFORE = 4
DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"

Processes = list[subprocess.Popen[bytes]]


class Watch(Observer):
    """Counts what the run is told, and does something when `UNITS_BEFORE` units are committed."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.seen: Counter[str] = Counter()
        self.first_at: float | None = None
        self._then = then

    def advance(self, record: CommitRecord) -> None:
        if not self.seen:
            self.first_at = time.monotonic()
        self.seen[record.unit_id] += 1
        if len(self.seen) == UNITS_BEFORE:
            self._then()


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def servers(logs: Path) -> Iterator[Callable[[str, Sequence[str]], subprocess.Popen[bytes]]]:
    """Starts processes, each a session of its own; none is left after the block."""
    started: Processes = []
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    path = os.pathsep.join(map(str, FOLDERS))

    def start(name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        # Beam's worker pool starts whatever is called `python` on its PATH.
        environment = {**os.environ, "PATH": own, "PYTHONPATH": path}
        with (logs / f"{name}.log").open("ab") as sink:
            command = [sys.executable, "-m", *arguments]
            process = subprocess.Popen(
                command, stdout=sink, stderr=sink, env=environment, start_new_session=True
            )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:  # SIGTERM is not enough for Beam's servers
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def listens(port: int) -> None:
    """Wait until someone listens on a port."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on port {port} after {START_SECONDS:.0f} s")


@contextlib.contextmanager
def dask(logs: Path) -> Iterator[tuple[list[str], Callable[[], None]]]:
    """A scheduler and two workers; the flags, and what kills one of the workers."""
    from distributed import Client

    with servers(logs) as start:
        port = free_port()
        address = f"tcp://127.0.0.1:{port}"
        place = ["--host", "127.0.0.1", "--port", str(port)]
        start("scheduler", ["dask", "scheduler", *place, "--no-dashboard"])
        listens(port)
        worker = ["dask", "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        workers = [start(f"worker-{i}", [*worker, "--host", "127.0.0.1"]) for i in (1, 2)]
        with Client(address) as client:
            client.wait_for_workers(len(workers), timeout=START_SECONDS)
        yield [f"--runner={DASK}", f"--dask_client_address={address}"], workers[0].kill


@contextlib.contextmanager
def portable(logs: Path) -> Iterator[tuple[list[str], Callable[[], None]]]:
    """A job service and an external worker pool; the flags, and nothing to kill."""
    with servers(logs) as start:
        job, pool = free_port(), free_port()
        package = "apache_beam.runners"
        start("jobs", [f"{package}.portability.local_job_service_main", "--port", str(job)])
        start("pool", [f"{package}.worker.worker_pool_main", f"--service_port={pool}"])
        listens(job)
        listens(pool)
        flags = ["--runner=PortableRunner", f"--job_endpoint=127.0.0.1:{job}"]
        flags += ["--environment_type=EXTERNAL", f"--environment_config=127.0.0.1:{pool}"]
        yield flags, lambda: None


RUNNERS = {"dask": dask, "portable": portable}


def run(runner: str, folder: Path) -> None:
    """Run the job locally and on `runner`, and compare.

    Raises:
        AssertionError: if the datasets differ, or the work was not done elsewhere.
    """
    sources = [f"{path}/" if path.is_dir() else str(path) for path in jobs.make_shards(folder)]
    local = config_for(folder, sources, "local")
    assert run_job(local, engine_factory=partial(PacedEngine, 0.0)).exit_code == 0
    away = config_for(folder, sources, runner)
    with RUNNERS[runner](folder) as (flags, kill):
        print("pantalla run job.toml --", " ".join(flags), flush=True)
        watch, started = Watch(kill), time.monotonic()
        engine = partial(PacedEngine, PACE_SECONDS)
        outcome = run_job(away, flags, observer=watch, engine_factory=engine)
        seconds = time.monotonic() - started
    assert outcome.exit_code == 0, outcome.reason
    jobs.check(away, local)
    records = jobs.opened(away).commits()
    pids = Counter(record.worker.pid for record in records)
    assert os.getpid() not in pids, "units were done in the job's own process"
    assert runner != "dask" or len(pids) > 1, "one worker did everything"
    assert watch.seen == Counter(record.unit_id for record in records), "progress missed units"
    assert watch.first_at is not None
    print(
        f"{runner}: {len(records)} units by {len(pids)} worker processes {dict(pids)} in "
        f"{seconds:.1f} s, the first one seen after {watch.first_at - started:.1f} s; the dataset "
        "equals the local one row for row, verify passes"
    )


def config_for(folder: Path, sources: list[str], name: str) -> JobConfig:
    """The settings of one of the jobs; progress is looked for often."""
    output = OutputConfig(dataset=str(folder / name))
    config = jobs.configured(folder, sources, output)
    small = config.input.model_copy(update={"lot_units": 1})
    return config.model_copy(
        update={"input": small, "run": RunConfig(heartbeat_seconds=0.5)},
    )


def main() -> None:
    """Run one of them, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runner", choices=sorted(RUNNERS), required=True)
    parser.add_argument("--keep", type=Path, help="a folder for datasets and logs, to look at")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep
        if folder is None:
            made = tempfile.TemporaryDirectory(prefix="pantalla-runners-")
            folder = Path(stack.enter_context(made))
        folder.mkdir(parents=True, exist_ok=True)
        run(options.runner, folder)


if __name__ == "__main__":
    main()
