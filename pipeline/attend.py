"""Runs the engine's work in a thread of its own, so that the main thread is free to act.

The main thread alone hears signals, and a call into an engine can last for minutes or for ever.
Here it waits, sees whether the time of grace is over or the engine is stuck, and goes on without
the thread when that does not come back.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable

from pipeline.stopping import abandon, abandon_requested, stop_requested
from pipeline.turns import forget_stuck_thread
from schemas.errors import DeadlineError, EngineError
from transforms.engines.holder import held_engine, start_lasts
from transforms.engines.processes import engine_processes, kill
from transforms.engines.supervised import SupervisedEngine

log = logging.getLogger(__name__)

GLANCE = 0.2
"""Seconds between two looks at the thread."""

LAST_WAIT = 10.0
"""Seconds in which a thread that was told to give up may come back: one step of the engine."""

_left_behind: list[threading.Thread] = []


def attend(work: Callable[[], None], start_seconds: float) -> None:
    """Run `work` in another thread and wait for it, as long as there is hope.

    Returns early when the job was asked to stop and the thread does not come back from the engine:
    what it was doing is lost, which is no more than a kill would cost.

    Args:
        work: owns the engine; raises what ends it.
        start_seconds: longest start of an engine.

    Raises:
        EngineError: if the engine is stuck for longer than is borne.
        Exception: whatever `work` raised.
    """
    failure: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failure.append(error)

    thread = threading.Thread(target=run, name="pantalla-job", daemon=True)
    thread.start()
    last = None
    while thread.is_alive():
        thread.join(GLANCE)
        _check_engine(thread, start_seconds)
        if last is None and _is_over():
            last = time.monotonic()
        if last is not None and (start_lasts() or time.monotonic() - last > LAST_WAIT):
            log.warning("the engine does not come back to stop: it is left behind and ended")
            _leave_behind(thread)
            return
    if failure:
        if isinstance(failure[0], DeadlineError):  # whatever it waited for is still there
            _leave_behind(thread)
        raise failure[0]


def end_process(code: int) -> None:
    """End the process for certain where a thread was left behind; else do nothing.

    The interpreter's own end would wait for that thread, or for the engine it is stuck in.
    """
    if _left_behind:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _is_over() -> bool:
    """Whether the thread should come back now; while an engine starts, nothing is in work."""
    if stop_requested() and held_engine() is None and start_lasts():
        abandon()
    return stop_requested() and abandon_requested()


def end_worker_if_stuck(start_seconds: float) -> None:
    """On a worker of a cluster: end the process when its engine is stuck.

    Nothing else frees the device. The runner starts another process, and gives it the lot again.
    """
    why = _stuck(start_seconds)
    if why is not None:
        log.error("%s; this worker process ends", why)
        _remember()
        kill(engine_processes())
        os._exit(3)


def _stuck(start_seconds: float) -> str | None:
    engine = held_engine()
    starting = start_lasts()
    if starting is not None and starting > start_seconds:
        return f"the engine has not started within {starting:.0f} s (engine.start_seconds)"
    return engine.overdue() if isinstance(engine, SupervisedEngine) else None


def _remember() -> None:
    engine = held_engine()
    if isinstance(engine, SupervisedEngine):
        engine.remember()


def _check_engine(thread: threading.Thread, start_seconds: float) -> None:
    why = _stuck(start_seconds)
    if why is None or not thread.is_alive():
        return
    _remember()
    _leave_behind(thread)
    raise EngineError(
        f"{why}. The process ends, since nothing else stops it; what is committed stays, run it "
        "again to go on: what may be to blame is asked apart then"
    )


def _leave_behind(thread: threading.Thread) -> None:
    _left_behind.append(thread)
    forget_stuck_thread()
    kill(engine_processes())
