"""One push of a dataset at a time, wherever it is started: a lease kept beside the data.

A lock of this machine cannot stop a second machine. The lease is a small object that is created
only where there is none (a hard link locally, a conditional put on S3), prolonged while the push
runs, and looked at again before writes. A lease whose holder is dead on this machine, or whose
time is over, is taken over.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Self

import psutil

from schemas.errors import LabelStudioError
from transforms.storage import Storage, join_uri
from transforms.storage.base import ObjectMissingError

LEASE = "_run/push-lease.json"
LEASE_SECONDS = 300.0
"""Longer than the slowest request of a push: a lease must not run out while one is under way."""

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease.

    Attributes:
        owner: random name of the push.
        host: its machine; `pid` and `started` (seconds, as the system tells) name its process.
        until: end of the lease, seconds since 1970.
    """

    owner: str
    host: str
    pid: int
    started: float
    until: float

    def is_gone(self, now: float) -> bool:
        """Whether its time is over, or its process on this machine has ended."""
        if self.until < now:
            return True
        return self.host == socket.gethostname() and _started(self.pid) != self.started


class PushLease:
    """The lease of one dataset, as a context manager.

    Args:
        storage: where the dataset lies.
        uri: the dataset.
        seconds: how long the lease lasts without being prolonged.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        storage: Storage,
        uri: str,
        seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._storage = storage
        self._uri = join_uri(uri, LEASE)
        self._seconds = seconds
        self._clock = clock
        self._owner = secrets.token_hex(8)
        self._until = 0.0

    def __enter__(self) -> Self:
        """Take the lease.

        Raises:
            LabelStudioError: another push of this dataset is running.
            StorageError: the dataset cannot be written.
        """
        for _ in range(_ATTEMPTS):
            if self._storage.create(self._uri, self._record()):
                return self
            holder = self._holder()
            if holder is None:
                continue
            if not holder.is_gone(self._clock()):
                raise LabelStudioError(
                    f"another push of this dataset is running on {holder.host} (process "
                    f"{holder.pid}); try again when it is done"
                )
            self._storage.delete(self._uri)
        raise LabelStudioError(f"{self._uri}: several pushes of this dataset start at once")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        holder = self._holder()
        if holder is not None and holder.owner == self._owner:
            self._storage.delete(self._uri)

    def still_ours(self) -> None:
        """Prolong the lease when two thirds of it are left or less; called before every write.

        Raises:
            LabelStudioError: another push has taken over.
        """
        if self._until - self._clock() > self._seconds * 2 / 3:
            return
        holder = self._holder()
        if holder is None or holder.owner != self._owner:
            raise LabelStudioError("another push of this dataset has taken over; this one stops")
        self._storage.write_atomic(self._uri, self._record())

    def _record(self) -> bytes:
        self._until = self._clock() + self._seconds
        started = _started(os.getpid()) or 0.0
        holder = Holder(self._owner, socket.gethostname(), os.getpid(), started, self._until)
        return json.dumps(asdict(holder)).encode()

    def _holder(self) -> Holder | None:
        """Who holds the lease; None where nobody does, or its record cannot be read."""
        try:
            fields = json.loads(self._storage.read(self._uri))
            return Holder(**fields)
        except ObjectMissingError:
            return None
        except (ValueError, TypeError):
            return Holder("?", "?", 0, 0.0, 0.0)


def _started(pid: int) -> float | None:
    """When a process of this machine began, or None where there is none of this number."""
    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
