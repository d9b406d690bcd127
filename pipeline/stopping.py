"""SIGINT and SIGTERM: stop taking units, finish the ones in work, commit, leave."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

log = logging.getLogger(__name__)

_requested = threading.Event()
_abandoned = threading.Event()
_signals: list[int] = []


def stop_requested() -> bool:
    """Whether the job was asked to stop."""
    return _requested.is_set()


def abandon_requested() -> bool:
    """Whether units that are not whole yet must be given up now."""
    return _abandoned.is_set()


def abandon() -> None:
    """Give up the units in work: the time to finish them is over."""
    _abandoned.set()


def stop_signal() -> int | None:
    """The first signal that asked the job to stop, or None."""
    return _signals[0] if _signals else None


def _on_signal(number: int, _frame: FrameType | None) -> None:
    _signals.append(number)
    if _requested.is_set():
        raise KeyboardInterrupt
    _requested.set()
    log.warning(
        "%s: finishing the units in work, then stopping; once more to stop at once",
        signal.Signals(number).name,
    )


@contextmanager
def stoppable() -> Iterator[None]:
    """Catch SIGINT and SIGTERM within the block; only the main thread can.

    The second signal interrupts at once: what is not committed is done again by the next run.
    """
    _requested.clear()
    _abandoned.clear()
    _signals.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {s: signal.signal(s, _on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
