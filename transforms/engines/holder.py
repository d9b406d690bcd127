"""One engine per process: started once, owned by the thread that started it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from schemas.caches import CacheCounts
from schemas.errors import EngineError
from transforms.engines.base import Engine, EngineFactory
from transforms.engines.clock import BusyClock


@dataclass(slots=True)
class HeldEngine:
    """The process's engine with its clock.

    Attributes:
        start_seconds: time the engine took to start; set to 0 once it has been reported.
        run: the run it was started for.
        told: what `take_caches` has told of the engine's counts.
    """

    engine: Engine
    owner: int
    clock: BusyClock
    start_seconds: float
    run: str = ""
    told: CacheCounts = field(default_factory=CacheCounts)

    def take_caches(self) -> CacheCounts:
        """What the engine's caches did since the last `take_caches`, or since its start check."""
        counts = self.engine.caches
        since, self.told = counts - self.told, counts
        return since


_lock = threading.Lock()
_held: list[HeldEngine] = []
_starting: list[float] = []


def hold_engine(factory: EngineFactory, run: str = "") -> HeldEngine:
    """The process's engine, started by the first call of a run.

    A process on a cluster lives longer than a run, and the next run may have another model: the
    engine of another run is closed first.

    An engine on a GPU takes all its memory, and vLLM aborts the process when two threads use it,
    so a second thread is refused rather than served.

    Raises:
        EngineError: if the engine cannot start, or another thread of this process owns it.
    """
    with _lock:
        if _held:
            if _held[0].owner != threading.get_ident():
                raise EngineError(
                    "the engine belongs to another thread of this process; "
                    "run Beam with one worker thread per process (--direct_num_workers=1)"
                )
            if _held[0].run == run:
                return _held[0]
            _held.pop().engine.close()
        started = time.monotonic()
        _starting.append(started)
        try:
            engine = factory()
        finally:
            _starting.clear()
        seconds = time.monotonic() - started
        owner = threading.get_ident()
        _held.append(HeldEngine(engine, owner, BusyClock(), seconds, run, engine.caches))
        return _held[0]


def held_engine() -> Engine | None:
    """The process's engine, for onlookers in other threads: never waits, starts nothing."""
    held = next(iter(tuple(_held)), None)
    return None if held is None else held.engine


def start_lasts() -> float | None:
    """Seconds since the start of an engine that is not ready yet, or None."""
    since = next(iter(tuple(_starting)), None)
    return None if since is None else time.monotonic() - since


def release_engine() -> None:
    """Close the process's engine, if there is one; its child processes are reaped."""
    with _lock:
        while _held:
            _held.pop().engine.close()
