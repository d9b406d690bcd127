"""A gzip file that can be read from the middle, by `indexed_gzip`.

Gzip has no places to start from, but a decompressor's memory at some of them can be kept: 32 KiB
each. Making them costs going through the file once, which `gzip_points` does; the standard library
reads a file from its start better, and says better what is wrong with it.
"""

from __future__ import annotations

import gzip
import io
import math
from contextlib import suppress
from typing import BinaryIO

import indexed_gzip

from schemas.errors import StorageError

_WINDOW = 32 * 2**10
"""What is kept of each place to start from: the most that gzip looks back (RFC 1951)."""

_BUFFERED = 4
"""Spacings that one read brings. It begins at the last place before it, so that with fewer a file
that is read from end to end would cost half its bytes once more."""

_MIN_SPACING = 2 * 2**20
_POINTS = 1024
"""Places to start from, at most: 32 MiB of them for the largest shard."""

_MIN_BUFFER, _MAX_BUFFER = 16 * 2**20, 64 * 2**20


def gzip_points(file: BinaryIO, size: int) -> bytes:
    """Places to start from, by going through the whole file; empty if it is damaged.

    Args:
        file: the compressed file.
        size: its size in bytes.

    Raises:
        StorageError: if `file` raised it.
    """
    stream = GzipStream(file, size)
    try:
        return stream.points()
    except indexed_gzip.ZranError:
        return b""


def gzip_stream(file: BinaryIO, size: int, points: bytes) -> GzipStream | gzip.GzipFile:
    """A gzip file to be read from the middle, or from its start if the places do not fit it."""
    if points:
        with suppress(indexed_gzip.ZranError):
            return GzipStream(file, size, points)
        file.seek(0)
    return gzip.GzipFile(fileobj=file)


class GzipStream:
    """Uncompressed bytes by offset, from the nearest place before it.

    Args:
        file: the compressed file.
        size: its size in bytes.
        points: what `gzip_points` gave for the same bytes.

    Raises:
        StorageError: by reading, where `file` raised it.
        indexed_gzip.ZranError: by reading, where the stream is cut or damaged; it is an OSError.
    """

    def __init__(self, file: BinaryIO, size: int, points: bytes = b"") -> None:
        self._file = _Kept(file)
        spacing = _spacing(size)
        # Each read of the library begins at the last place before it: reads shorter than the way
        # from place to place would decompress the same bytes many times.
        self._stream = indexed_gzip.IndexedGzipFile(
            fileobj=self._file,
            spacing=spacing,
            buffer_size=min(max(_MIN_BUFFER, _BUFFERED * spacing), _MAX_BUFFER),
        )
        if points:
            self._stream.import_index(fileobj=io.BytesIO(points))

    def points(self) -> bytes:
        """All places to start from, in the format of `indexed_gzip`."""
        target = io.BytesIO()
        try:
            self._stream.build_full_index()
            self._stream.export_index(fileobj=target)
        finally:
            self._file.check()
        return target.getvalue()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an uncompressed offset; beyond the end is the end."""
        try:
            return int(self._stream.seek(offset, whence))
        finally:
            self._file.check()

    def tell(self) -> int:
        """The uncompressed offset."""
        return int(self._stream.tell())

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, fewer at the end."""
        try:
            return bytes(self._stream.read(size))
        finally:
            self._file.check()

    def close(self) -> None:
        """Give the memory back; `file` stays open."""
        self._stream.close()


def _spacing(size: int) -> int:
    """Bytes from place to place, so that a start in the middle reads the least.

    It reads all places and one buffer: their sum is smallest where both are as large.
    """
    return max(_MIN_SPACING, math.isqrt(size * _WINDOW // _BUFFERED), size // _POINTS)


_MAX_EMPTY = 16
"""Reads in a row that bring nothing before we stop the library, which would ask for ever."""


class _Kept:
    """A file whose errors outlive the C code between, which has only one of its own for all."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: Exception | None = None
        self._empty = 0

    def check(self) -> None:
        """Raise what happened since the last call."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def read(self, size: int = -1) -> bytes:
        """As of the file.

        Raises:
            EOFError: if more is asked for again and again where nothing is left.
        """
        try:
            data = self._file.read(size)
        except (OSError, StorageError) as error:
            self._error = error
            raise
        self._empty = 0 if data else self._empty + 1
        if self._empty > _MAX_EMPTY:
            raise EOFError("the file is shorter than its index says")
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As of the file."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Always: every storage gives seekable files."""
        return True
