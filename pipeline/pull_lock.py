"""One puller of a dataset at a time: two at once would each write what the other wrote."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from schemas.errors import DatasetError
from transforms.storage import ObjectMissingError, Storage, join_uri

LEASE_S = 600.0
"""How long a lock on S3 outlives its holder's last sign of life: nothing there ends with a
process."""

_SETTLE_S = 1.0
_S3 = "s3://"

Renew = Callable[[], None]
"""Says that the holder of the lock is alive."""


class _Lease(BaseModel):
    token: str
    holder: str
    until: float


@contextmanager
def only_puller(storage: Storage, folder: str) -> Iterator[Renew]:
    """Hold the lock of a folder of a dataset; gives what to call while work goes on.

    Local: a file lock, which ends with its process. S3: a lease in an object that is made only
    where there is none; a killed holder's lease runs out after `LEASE_S`.

    Args:
        storage: where the dataset lies.
        folder: the folder that holds the lock, in the dataset.

    Raises:
        DatasetError: if another one holds it.
    """
    if folder.startswith(_S3):
        with _leased(storage, join_uri(folder, "lock.json")) as renew:
            yield renew
        return
    path = Path(folder, "lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=0):
            yield lambda: None
    except Timeout:
        raise DatasetError(
            f"{folder}: another pull is running; try again when it is done"
        ) from None


@contextmanager
def _leased(storage: Storage, uri: str) -> Iterator[Renew]:
    token, holder = secrets.token_hex(8), f"{socket.gethostname()} {os.getpid()}"

    def fresh() -> bytes:
        lease = _Lease(token=token, holder=holder, until=time.time() + LEASE_S)
        return lease.model_dump_json().encode()

    if not storage.create(uri, fresh()):
        _take_over(storage, uri, fresh())
    _check_ours(storage, uri, token)
    try:
        yield lambda: storage.write_atomic(uri, fresh())
    finally:
        found = _read(storage, uri)
        if found is not None and found.token == token:
            storage.delete(uri)


def _take_over(storage: Storage, uri: str, lease: bytes) -> None:
    """Take a lease that has run out; of two who try at once the later writer has it."""
    found = _read(storage, uri)
    if found is not None and found.until > time.time():
        raise DatasetError(
            f"{uri}: another pull is running ({found.holder}); if it was killed, its lock runs "
            f"out in {found.until - time.time():.0f} s"
        )
    storage.write_atomic(uri, lease)
    time.sleep(_SETTLE_S)


def _check_ours(storage: Storage, uri: str, token: str) -> None:
    """Some stores let a second create pass; the later one has it then."""
    now = _read(storage, uri)
    if now is None or now.token != token:
        raise DatasetError(f"{uri}: another pull has just started")


def _read(storage: Storage, uri: str) -> _Lease | None:
    try:
        return _Lease.model_validate_json(storage.read(uri))
    except (ObjectMissingError, ValidationError):
        return None
