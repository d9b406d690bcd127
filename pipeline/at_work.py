"""Who is at work on a dataset: a small file per process, renewed while it lives.

Two jobs on one dataset need none of this: units are committed exactly once without it. It is for
`pantalla clean`, which must not take for a leftover what a job is writing.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, Protocol

import psutil
from pydantic import TypeAdapter, ValidationError

from schemas.errors import DatasetError, StorageError
from transforms.commit import RUN
from transforms.storage import Storage, join_uri

log = logging.getLogger(__name__)

JOBS = "jobs"
"""Folder of these files, in the folder `_run` of a dataset."""

RENEW_SECONDS = 60.0
"""Between two renewals: one small put a minute costs nothing beside a job."""

SILENT_SECONDS = 900.0
"""A process on another machine that was silent for so long is taken for dead: many times the pace
and the retries of a store, and more than clocks of machines differ."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One process at work.

    Attributes:
        kind: a job that writes, or a cleaner that removes.
        started: when the process began, by its own machine: tells it from a later one of its pid.
        renewed: seconds since the epoch.
        part: `i/n` of a job that does a part; empty for the whole.
    """

    kind: Literal["job", "clean"]
    host: str
    pid: int
    started: float
    renewed: float
    part: str = ""

    def __str__(self) -> str:
        ago = max(0, round(time.time() - self.renewed))
        return f"{self.kind} of process {self.pid} on {self.host}, seen {ago} s ago"

    @property
    def alive(self) -> bool:
        """Whether it is at work, as far as can be told from here."""
        if self.host != platform.node():
            return time.time() - self.renewed < SILENT_SECONDS
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) < 1
        except psutil.NoSuchProcess:
            return False


class Place(Protocol):
    """Where a dataset lies: `Dataset` and `DatasetWriter` say so."""

    @property
    def uri(self) -> str:
        """Its root."""

    @property
    def storage(self) -> Storage:
        """What holds it."""


@contextmanager
def at_work(place: Place, kind: Literal["job", "clean"], part: str = "") -> Iterator[None]:
    """Say within the block that this process is at work on a dataset.

    The file is written first and the others are looked at then, by both kinds: of two that begin
    at the same time at least one sees the other, and gives way. Of a job that does the same part,
    started twice perhaps by mistake, a job only warns: nothing is doubled but the work.

    Args:
        place: the dataset.
        kind: what this process does.
        part: `i/n` where it does a part.

    Raises:
        DatasetError: if a cleaner is at work, or for a cleaner if anyone else is.
        StorageError: if the file cannot be written.
    """
    name = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}.json"
    storage, uri = place.storage, join_uri(place.uri, RUN, JOBS, name)
    started = psutil.Process().create_time()

    def renew() -> None:
        mine = Worker(kind, platform.node(), os.getpid(), started, time.time(), part)
        storage.write_atomic(uri, _adapter().dump_json(mine))

    renew()
    ended = threading.Event()
    thread = threading.Thread(target=_keep, args=(renew, ended), name="at-work", daemon=True)
    try:
        _give_way(place, kind, part, uri)
        thread.start()
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join(RENEW_SECONDS)
        with suppress(StorageError):  # what stays is seen to be dead
            storage.delete(uri)


def workers(place: Place) -> dict[str, Worker | None]:
    """The files of this kind by URI, with what they say; None for one that cannot be read."""
    found: dict[str, Worker | None] = {}
    for stat in place.storage.list(join_uri(place.uri, RUN, JOBS) + "/"):
        try:
            found[stat.uri] = _adapter().validate_json(place.storage.read(stat.uri))
        except ValidationError:
            found[stat.uri] = None
        except StorageError:
            continue  # its process has just ended
    return found


def _give_way(place: Place, kind: str, part: str, mine: str) -> None:
    for uri, worker in workers(place).items():
        if uri == mine or worker is None or not worker.alive:
            continue
        if kind == "clean" or worker.kind == "clean":
            raise DatasetError(
                f"{place.uri}: a {worker} is at work on this dataset; wait for its end"
            )
        if worker.part == part:
            log.warning(
                "%s: a %s does the same as this one. Each unit is kept once, but what both have in "
                "work is computed twice; `--partition` or `--workers` shares the work",
                place.uri, worker,
            )  # fmt: skip


def _keep(renew: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(RENEW_SECONDS):
        try:
            renew()
        except StorageError as error:
            log.warning("cannot say that this job is at work: %s", error)


def _adapter() -> TypeAdapter[Worker]:
    return TypeAdapter(Worker)
