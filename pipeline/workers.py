"""Several job processes over one plan: started, watched, restarted, stopped and reaped.

Each does one partition with an engine of its own; this process lists, proves, pushes and reports.
Nothing passes between them but the dataset: a worker that dies is started again, and goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.follow import fresh_records
from pipeline.heartbeat import Heartbeat, heartbeat_uri
from pipeline.partition import Partition
from pipeline.plan import Plan
from pipeline.stopping import abandon_requested, stop_requested, stop_signal
from schemas.errors import ConfigError, EngineError, PantallaError, StorageError
from transforms.commit import DatasetWriter
from transforms.engines.sentinel import guard
from transforms.storage import Storage, storage_for

log = logging.getLogger(__name__)

LOOK = 0.2
"""Seconds between two looks at the processes."""

MAX_RESTARTS = 3
"""Restarts of one worker without a unit of its part being committed in between."""

_LAST_WAIT = 30.0
"""Seconds that a worker has to end after its time of grace, before it is killed."""

_SILENCE_BEATS, _SILENCE_SECONDS = 12, 60.0
"""A worker whose heartbeat has not changed for this many beats and seconds is frozen."""

_TAIL_LINES = 15

_KINDS: Mapping[int, type[PantallaError]] = {2: ConfigError, 3: EngineError, 4: StorageError}
"""What the run ends with for a worker's exit code, the worst first."""

Command = Callable[[Partition, str], Sequence[str]]
"""The command line of the worker that does a partition of a dataset, told by its URI."""


@dataclass(slots=True)
class Worker:
    """One worker process and what is known of it.

    Attributes:
        part: the units it is to do.
        failure: exit code of its last failure, once it is not started again.
    """

    partition: Partition
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    part: frozenset[str]
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    done_at_start: int = 0
    failure: int | None = None
    finished: bool = False
    heard: str = ""
    heard_at: float = field(default_factory=time.monotonic)

    @property
    def runs(self) -> bool:
        """Whether its process is alive."""
        return self.process is not None and self.process.poll() is None

    def start(self, done: int) -> None:
        """Start its process, in a session of its own: signals reach it through us alone."""
        self.done_at_start, self.heard_at = done, time.monotonic()
        with self.log.open("ab") as sink:
            self.process = subprocess.Popen(
                list(self.command),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def kill(self) -> None:
        """End its process for certain; its engine goes with it."""
        if self.process is not None and self.runs:
            self.process.kill()
            self.process.wait()

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        return "\n".join(f"  | {line}" for line in lines)


class Crew:
    """The workers of one run.

    Args:
        workers: not started yet.
        dataset: where their commits appear.
        every: seconds between two looks at the dataset.
        grace: seconds from a signal until their units are given up.
    """

    def __init__(
        self, workers: Sequence[Worker], dataset: DatasetWriter, every: float, grace: float
    ) -> None:
        self.workers = workers
        self._dataset, self._every, self._grace = dataset, every, grace
        self._storage: Storage = storage_for(dataset.uri, dataset.s3_endpoint)
        self._seen: set[str] = set()
        self._looked = 0.0
        self._told = 0
        self._told_at = 0.0

    def run(self, beat: Heartbeat, done: frozenset[str]) -> None:
        """Start all, and wait until each is done, has failed for good, or was stopped.

        Args:
            beat: told about every unit that they commit.
            done: units that were committed before.

        Raises:
            PantallaError: of the kind of the worst failure, with the end of that worker's log.
        """
        self._seen = set(done)
        try:
            for worker in self.workers:
                self._start(worker)
            while any(worker.runs for worker in self.workers):
                time.sleep(LOOK)
                self._pass_signals_on()
                self._follow(beat)
                for worker in self.workers:
                    self._check(worker)
        finally:
            self.reap()
        self._follow(beat, at_once=True)
        self._judge()

    def reap(self) -> None:
        """No worker is left after this."""
        for worker in self.workers:
            worker.kill()

    def _start(self, worker: Worker) -> None:
        worker.start(len(worker.part & self._seen))

    def _pass_signals_on(self) -> None:
        """The first signal, and the second when the units in work are to be given up."""
        wanted = int(stop_requested()) + int(stop_requested() and abandon_requested())
        number = stop_signal()
        while number is not None and self._told < wanted:
            self._told, self._told_at = self._told + 1, time.monotonic()
            for worker in self.workers:
                if worker.process is not None and worker.runs:
                    worker.process.send_signal(number)
        if self._told and time.monotonic() - self._told_at > self._grace + _LAST_WAIT:
            log.warning("workers that did not stop in time are killed")
            self.reap()

    def _follow(self, beat: Heartbeat, *, at_once: bool = False) -> None:
        """Tell what was committed since the last look; a store in trouble is asked again later."""
        if not at_once and time.monotonic() - self._looked < self._every:
            return
        with contextlib.suppress(StorageError):
            for record in fresh_records(self._dataset, frozenset(self._seen)):
                self._seen.add(record.unit_id)
                beat.advance(record)
        self._listen()
        self._looked = time.monotonic()

    def _listen(self) -> None:
        """A worker whose heartbeat stands still is frozen: nothing in it can act any more."""
        patience = _SILENCE_BEATS * self._every + _SILENCE_SECONDS
        for worker in self.workers:
            uri = heartbeat_uri(self._dataset.uri, worker.partition)
            heard = ""
            with contextlib.suppress(StorageError):
                heard = self._storage.read(uri).decode()
            if heard != worker.heard:
                worker.heard, worker.heard_at = heard, time.monotonic()
            elif heard and time.monotonic() - worker.heard_at > patience:
                log.warning("worker %s has been silent for too long", worker.partition)
                worker.kill()

    def _check(self, worker: Worker) -> None:
        """See how a worker ended, and start it again where that makes sense."""
        if worker.process is None or worker.runs or worker.finished or worker.failure is not None:
            return
        code = worker.process.returncode
        if code == 0 or stop_requested():
            worker.finished = True
            return
        if len(worker.part & self._seen) > worker.done_at_start:
            worker.restarts = 0
        if code == 2 or worker.restarts >= MAX_RESTARTS:
            worker.failure = code
            log.error("worker %s failed for good, exit code %d", worker.partition, code)
            return
        worker.restarts += 1
        log.warning(
            "worker %s ended with code %d; starting it again, %d of at most %d in a row",
            worker.partition, code, worker.restarts, MAX_RESTARTS,
        )  # fmt: skip
        self._start(worker)

    def _judge(self) -> None:
        failed = [worker for worker in self.workers if worker.failure is not None]
        if not failed or stop_requested():
            return
        codes = [worker.failure for worker in failed]
        worst = next((w for code in _KINDS for w in failed if w.failure == code), failed[0])
        kind = _KINDS.get(worst.failure or 0, PantallaError)
        raise kind(
            f"{len(failed)} of {len(self.workers)} workers failed (exit codes "
            f"{', '.join(map(str, codes))}); what is committed stays, run it again to go on. "
            f"The end of the log of worker {worst.partition}, {worst.log}:\n{worst.tail()}"
        )


def make_crew(
    plan: Plan,
    dataset: DatasetWriter,
    command: Command,
    environments: Sequence[Mapping[str, str]],
    logs: Path,
    *,
    every: float,
    grace: float,
) -> Crew:
    """A worker for each environment.

    Args:
        plan: the whole plan, which they share.
        dataset: theirs and ours.
        command: starts one.
        environments: variables of each.
        logs: a folder for their logs.
        every: seconds between two looks at the dataset.
        grace: seconds from a signal until their units are given up.
    """
    guard()  # whatever ends this process ends the workers
    count = len(environments)
    workers = []
    for number, environment in enumerate(environments, start=1):
        partition = Partition(number, count)
        part = frozenset(unit.unit_id for unit in plan.part(partition).units)
        file = logs / f"worker-{number}.log"
        workers.append(Worker(partition, command(partition, dataset.uri), environment, file, part))
    return Crew(workers, dataset, every, grace)
