"""SIGINT and SIGTERM: stop taking units, finish what can be finished in time, commit, leave.

The first signal starts the time of grace; its end, or a second signal, gives up the units that
are not whole yet: the next run does them again. A third signal has its usual effect.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from schemas.errors import StoppedError

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_requested = threading.Event()
_abandoned = threading.Event()
_signals: list[int] = []
_deadline: list[float] = []
_grace: list[float] = []
_open_to_interrupt: list[bool] = []


class _Interrupt(BaseException):
    """Raised out of a wait by a signal; no library catches it by mistake."""


def stop_requested() -> bool:
    """Whether the job was asked to stop."""
    return _requested.is_set()


def abandon_requested() -> bool:
    """Whether units that are not whole yet must be given up now."""
    if _deadline and time.monotonic() >= _deadline[0]:
        _abandoned.set()
    return _abandoned.is_set()


def abandon() -> None:
    """Give up the units in work, whatever time is left."""
    _abandoned.set()


def stop_signal() -> int | None:
    """The first signal that asked the job to stop, or None."""
    return _signals[0] if _signals else None


def request_stop(number: int) -> None:
    """Do what the signal `number` does; for the handler, and for tests."""
    _signals.append(number)
    name = signal.Signals(number).name
    if len(_signals) == 1:
        seconds = _grace[0] if _grace else 0.0
        _deadline.append(time.monotonic() + seconds)
        _requested.set()
        log.warning(
            "%s: finishing the units in work for up to %g s (run.grace_seconds), then stopping; "
            "once more to give them up at once", name, seconds,
        )  # fmt: skip
    else:
        log.warning("%s again: giving up the units in work; the next run does them", name)
        _abandoned.set()


def _on_signal(number: int, _frame: FrameType | None) -> None:
    request_stop(number)
    if len(_signals) > 1:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
    if _open_to_interrupt:
        _interrupt_if_asked()


def _interrupt_if_asked() -> None:
    if _signals:
        raise _Interrupt


@contextmanager
def stoppable(grace_seconds: float = 0.0) -> Iterator[None]:
    """Catch SIGINT and SIGTERM within the block; only the main thread can.

    Args:
        grace_seconds: from the first signal until units in work are given up.
    """
    for state in (_signals, _deadline, _grace, _open_to_interrupt):
        state.clear()
    _requested.clear()
    _abandoned.clear()
    _grace.append(grace_seconds)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, _on_signal) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def interruptible(doing: str) -> Iterator[None]:
    """A step that may be cut off anywhere, because doing it again does no harm.

    Args:
        doing: what it does, for the error.

    Raises:
        StoppedError: if a signal came, in the block or before it.
    """
    try:
        _open_to_interrupt.append(True)
        _interrupt_if_asked()
        yield
    except _Interrupt:
        name = signal.Signals(_signals[0]).name
        raise StoppedError(f"{name} while {doing}: stopped", _signals[0]) from None
    finally:
        _open_to_interrupt.clear()
