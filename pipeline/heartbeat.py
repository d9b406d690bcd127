"""A small file that says, at a steady pace, that a run is alive and how far it is."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import Self

from pipeline.observer import Observer
from pipeline.partition import Partition
from pipeline.plan import Plan
from pipeline.report.words import duration
from schemas.commits import CommitRecord
from schemas.errors import StorageError
from transforms.commit import RUN
from transforms.engines.holder import held_engine, start_lasts
from transforms.engines.supervised import SupervisedEngine
from transforms.storage import join_uri, storage_for
from transforms.storage.base import S3Address

log = logging.getLogger(__name__)


class Phase(StrEnum):
    """What a run is doing."""

    ENGINE_START = "engine_start"
    ANNOTATE = "annotate"
    PUSH = "push"
    REPORT = "report"
    ENDED = "ended"


def heartbeat_uri(dataset: str, partition: Partition | None) -> str:
    """Where a run of `dataset` leaves its heartbeat; each partition has its own."""
    name = "heartbeat" if partition is None else f"heartbeat-{partition.name}"
    return join_uri(dataset, RUN, f"{name}.json")


@dataclass
class Heartbeat(Observer):
    """Passes on what it is told, and writes it down every `seconds`; a context manager.

    A store in trouble does not stop the run: it is warned about once.

    Attributes:
        uri: of the file; replaced as a whole each time.
        watch: told everything too, and each beat as a line.
    """

    uri: str
    s3: S3Address
    seconds: float
    watch: Observer
    partition: Partition | None = None
    _phase: Phase = Phase.ANNOTATE
    _since: float = field(default_factory=time.monotonic)
    _began: float = 0.0
    _units: int = 0
    _done: int = 0
    _reused: int = 0
    _exit_code: int | None = None
    _failed: bool = False
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin to beat, in a thread of its own."""
        self._thread = threading.Thread(target=self._beat, name="pantalla-heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and leave a last word."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(self.seconds + 5)  # a write that hangs must not keep the job
        self.enter(Phase.ENDED)
        self._write(None if error is None else f"{type(error).__name__}: {error}")

    def enter(self, phase: Phase) -> None:
        """The run does something else from now on."""
        self._phase, self._since = phase, time.monotonic()

    def ends_with(self, exit_code: int) -> None:
        """The exit code of the last word."""
        self._exit_code = exit_code

    def status(self, text: str) -> None:
        """A step begins."""
        self.watch.status(text)

    def start(self, plan: Plan, done_units: int) -> None:
        """The work is known."""
        self._units, self._done, self._reused = len(plan.units), done_units, done_units
        self._began = time.monotonic()
        self.watch.start(plan, done_units)

    def advance(self, record: CommitRecord) -> None:
        """One more unit is committed."""
        self._done += 1
        self.watch.advance(record)

    def finish(self) -> None:
        """No more units will come."""
        self.watch.finish()

    def content(self, error: str | None = None) -> dict[str, object]:
        """What the file says; times are ISO 8601 in UTC, durations seconds.

        Args:
            error: what ended the run, if it did not end by itself.
        """
        engine = held_engine()
        oldest = engine.oldest() if isinstance(engine, SupervisedEngine) else None
        in_flight = engine.in_flight if isinstance(engine, SupervisedEngine) else 0
        rate = self._rate()
        left = self._units - self._done
        return {
            "phase": self._now_doing(),
            "phase_seconds": round(time.monotonic() - self._since, 1),
            "updated": datetime.now(UTC).isoformat(timespec="seconds"),
            "every_seconds": self.seconds,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "partition": None if self.partition is None else str(self.partition),
            "units": self._units,
            "units_done": self._done,
            "units_per_second": None if rate is None else round(rate, 4),
            "eta_seconds": None if rate is None else round(left / rate),
            "in_flight": in_flight,
            "oldest_in_flight": None
            if oldest is None
            else {"sample_id": oldest[0], "seconds": round(oldest[1], 1)},
            "exit_code": self._exit_code,
            "error": error,
        }

    def _now_doing(self) -> Phase:
        starting = self._phase is Phase.ANNOTATE and start_lasts() is not None
        return Phase.ENGINE_START if starting else self._phase

    def _rate(self) -> float | None:
        """Units a second of this run; None before its first."""
        new, seconds = self._done - self._reused, time.monotonic() - self._began
        return new / seconds if new > 0 and self._began and seconds > 0 else None

    def _line(self, content: dict[str, object]) -> str:
        """What is worth saying when no unit was committed for a while."""
        starting = start_lasts()
        if starting is not None:
            return f"the engine is starting for {duration(starting)}"
        oldest = content["oldest_in_flight"]
        if isinstance(oldest, dict):
            return (
                f"{content['in_flight']} requests in the engine, the oldest for "
                f"{duration(oldest['seconds'])}"
            )
        return f"{content['phase']} for {duration(time.monotonic() - self._since)}"

    def _beat(self) -> None:
        while True:
            self._write(None)
            self.watch.tick(self._line(self.content()))
            if self._stopped.wait(self.seconds):
                return

    def _write(self, error: str | None) -> None:
        data = json.dumps(self.content(error), ensure_ascii=False, indent=1).encode()
        try:
            storage_for(self.uri, self.s3).write_atomic(self.uri, data)
        except StorageError as problem:
            if not self._failed:
                log.warning("the heartbeat cannot be written: %s", problem)
            self._failed = True
