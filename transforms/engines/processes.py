"""The processes of an engine: found by name, watched, and ended for certain."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence

import psutil

TITLE = "VLLM::"
"""vLLM titles the processes of an engine `VLLM::EngineCore`, `VLLM::Worker...`."""

PATIENCE = 5.0
"""Seconds between waiting, asking and forcing."""


def engine_processes() -> list[psutil.Process]:
    """Processes of an engine under this one."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.name().startswith(TITLE)]


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started within do not hear SIGINT and SIGTERM: their parent decides about them.

    A Ctrl-C, and what many schedulers send, goes to every process of the job at once, and vLLM's
    engine obeys; but the job still wants answers from it. A process inherits what the thread that
    starts it blocks. In the main thread this does nothing: it must go on to hear signals itself.
    """
    if threading.current_thread() is threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def lost(processes: Sequence[psutil.Process]) -> list[int]:
    """Ids of those that have ended."""
    return [process.pid for process in processes if not _lives(process)]


def kill(processes: Sequence[psutil.Process]) -> None:
    """End them without asking: a stuck engine answers no signal but this."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=PATIENCE)


def reap(processes: Sequence[psutil.Process]) -> None:
    """End what is left of them: waited for, then asked, then made to."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                end(process)
        _, alive = psutil.wait_procs(alive, timeout=PATIENCE)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
