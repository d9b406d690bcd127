"""Nothing of an engine outlives its job, whatever ended the job."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from transforms.engines.processes import deaf_children, kill, lost

ROOT = Path(__file__).resolve().parents[3]
JOB = """
import os, subprocess, sys, time
from transforms.engines.sentinel import guard
guard()
guard()
child = 'import subprocess, sys, time; subprocess.Popen(["sleep", "300"]); time.sleep(300)'
engine = subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
print(engine.pid, flush=True)
time.sleep(float(sys.argv[1]))
os._exit(3)
"""


def tree(pid: int) -> list[psutil.Process]:
    until = time.monotonic() + 20
    engine = psutil.Process(pid)
    while not engine.children():
        assert time.monotonic() < until
        time.sleep(0.05)
    return [engine, *engine.children(recursive=True)]


@pytest.mark.parametrize("how", ["killed", "leaves"])
def test_engine_processes_end_with_their_job(how: str) -> None:
    job = subprocess.Popen(
        [sys.executable, "-c", JOB, "1.5" if how == "leaves" else "300"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert job.stdout is not None
    engine = tree(int(job.stdout.readline()))
    bystander = subprocess.Popen(["sleep", "300"])
    if how == "killed":
        job.kill()
    job.communicate(timeout=20)
    _, alive = psutil.wait_procs(engine, timeout=10)
    assert alive == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_signals_to_all_reach_the_job_alone() -> None:
    """What a thread starts is deaf; what ends it for certain is not asked."""
    import threading

    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        with deaf_children():
            children.append(subprocess.Popen(["sleep", "300"]))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    process = psutil.Process(children[0].pid)
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    time.sleep(0.3)
    assert lost([process]) == []
    kill([process])
    assert lost([process]) == [process.pid]
    children[0].wait()
