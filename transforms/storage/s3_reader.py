"""Reading an object by ranges, resuming where a connection was cut or stalled."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

from botocore.exceptions import BotoCoreError
from urllib3.exceptions import HTTPError

from schemas.errors import StorageError
from transforms.storage.s3_connection import backoff_seconds


@dataclass(frozen=True, slots=True)
class Body:
    """The answer to one range request.

    Attributes:
        length: bytes the server announced, or None where its header did not arrive whole: a
            connection may be cut there too, and what is left looks like an empty answer.
    """

    stream: BinaryIO
    length: int | None


Fetch: TypeAlias = "Callable[[int, int, str], Body]"
"""Opens bytes `first..last` (both included) of one version of an object."""

CHUNK = 256 * 2**10
"""Bytes asked of a body at once: the most that a cut connection loses."""

RESUMES = 5
"""Attempts in a row that bring no byte before a read is given up."""

_CUT = (BotoCoreError, HTTPError, OSError)


class RangeReader(io.RawIOBase):
    """A seekable raw file over `fetch`; wrap it in `io.BufferedReader` for read-ahead.

    botocore retries requests, but not the reading of a body; this does, from the byte reached and
    only on the same version, so that two versions of an object are never mixed.

    Args:
        fetch: opens one range.
        uri: for messages.
        size: length of the object.
        version: ETag that every range must have; empty accepts any.
    """

    def __init__(self, fetch: Fetch, uri: str, size: int, version: str) -> None:
        super().__init__()
        self._fetch = fetch
        self._uri = uri
        self._size = size
        self._version = version
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Position in the object."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched.

        Raises:
            ValueError: if the position would be negative.
        """
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset} in {self._uri}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # typeshed's Buffer has no len
        """Fill `buffer`, or as much of it as the object has.

        Raises:
            StorageError: after `RESUMES` attempts in a row without a byte.
        """
        view = memoryview(buffer)[: max(self._size - self._position, 0)]
        done, idle = 0, 0
        while done < len(view):
            got, cut = self._attempt(view[done:])
            done += got
            if cut is None:
                break
            idle = 0 if got else idle + 1
            if idle >= RESUMES:
                raise StorageError(
                    f"{self._uri}: read stopped at byte {self._position} of {self._size} "
                    f"after {RESUMES} attempts: {type(cut).__name__}: {cut}"
                ) from cut
            if idle:
                time.sleep(backoff_seconds(idle))
        return done

    def readall(self) -> bytes:
        """Everything from here to the end, in one request; the inherited one makes 8 KiB ones."""
        buffer = bytearray(max(self._size - self._position, 0))
        return bytes(memoryview(buffer)[: self.readinto(buffer)])

    def _attempt(self, view: memoryview) -> tuple[int, Exception | None]:
        """Read what one request brings: bytes gained, and what cut it short, if anything."""
        last = self._position + len(view) - 1
        body = self._fetch(self._position, last, self._version)
        got = 0
        cut: Exception | None = None
        try:
            while chunk := body.stream.read(min(len(view) - got, CHUNK)):
                view[got : got + len(chunk)] = chunk
                got += len(chunk)
        except _CUT as error:
            cut = error
        finally:
            body.stream.close()
        self._position += got
        if cut is None and got != body.length:
            cut = EOFError(f"{got} bytes of {body.length}")
        return got, cut
