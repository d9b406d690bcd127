"""Shards that stay open between units, because finding the place again is what costs.

A compressed stream, or a large row group of a Parquet file, can only be read on from where it
stands. Units mostly come in order, so the one before leaves its open reader here for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Protocol, TypeVar

_HELD = 3
"""Readers kept open at a time, in the whole process."""


class Reader(Protocol):
    """Something open that stands at a place of a shard."""

    def tell(self) -> int:
        """How far it is: it can only go on from here."""

    def close(self) -> None:
        """Give everything back."""


R = TypeVar("R", bound=Reader)


class Bench:
    """Open readers that nobody uses at the moment; the oldest is closed to make room.

    A reader on the bench has one key, and is handed to one borrower at a time: safe for threads.
    """

    def __init__(self, room: int = _HELD) -> None:
        self._room = room
        self._lock = Lock()
        self._waiting: list[tuple[str, Reader]] = []

    @contextmanager
    def lend(self, key: str, place: int, start: Callable[[], R]) -> Iterator[R]:
        """The reader that is nearest before `place`, or a new one; kept for later if all goes well.

        Args:
            key: names the kind of reader and the very bytes it reads.
            place: where reading will begin, in the reader's own terms.
            start: opens a new one.
        """
        reader = self._take(key, place) or start()
        whole = False
        try:
            yield reader  # type: ignore[misc] # a key belongs to one kind of reader
            whole = True
        finally:
            if whole:
                self._put_back(key, reader)
            else:
                reader.close()

    def _take(self, key: str, place: int) -> Reader | None:
        with self._lock:
            fitting = [r for k, r in self._waiting if k == key and r.tell() <= place]
            if not fitting:
                return None
            best = max(fitting, key=lambda reader: reader.tell())
            self._waiting = [(k, r) for k, r in self._waiting if r is not best]
        return best

    def _put_back(self, key: str, reader: Reader) -> None:
        with self._lock:
            self._waiting.append((key, reader))
            leaving = self._waiting[: -self._room]
            del self._waiting[: -self._room]
        for _, old in leaving:
            old.close()


BENCH = Bench()
"""The readers of this process."""
