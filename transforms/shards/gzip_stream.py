"""A gzip file as a seekable stream that can start in the middle, by `indexed_gzip`."""

from __future__ import annotations

import io
from typing import BinaryIO

import indexed_gzip

from schemas.errors import StorageError

_MIN_SPACING = 8 * 2**20
_POINTS = 256
"""Places to start from, in a shard of any size: each costs 32 KiB of the index."""

_BUFFER = 2**20


class GzipStream:
    """Uncompressed bytes by offset; notes places to start from while it goes forward.

    Args:
        file: the compressed file.
        size: its size in bytes.
        points: what `points` of another stream over the same file gave.

    Raises:
        StorageError: by reading, where `file` raised it.
        indexed_gzip.ZranError: by reading, where the stream is cut or damaged; it is an OSError.
    """

    def __init__(self, file: BinaryIO, size: int, points: bytes = b"") -> None:
        self._file = _Quiet(file)
        self._stream = indexed_gzip.IndexedGzipFile(
            fileobj=self._file, spacing=max(_MIN_SPACING, size // _POINTS), buffer_size=_BUFFER
        )
        if points:
            self._stream.import_index(fileobj=io.BytesIO(points))

    def points(self) -> bytes:
        """Places to start from, in the format of `indexed_gzip`."""
        target = io.BytesIO()
        self._stream.export_index(fileobj=target)
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
        """Give the memory back, and close the file."""
        self._stream.close()
        self._file.close()


class _Quiet:
    """A file whose errors wait until C code is left, where they would be lost or worse."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: Exception | None = None

    def check(self) -> None:
        """Raise what happened since the last call."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def read(self, size: int = -1) -> bytes:
        """As of the file, or nothing after an error."""
        try:
            return self._file.read(size)
        except (OSError, StorageError) as error:
            self._error = error
            return b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As of the file."""
        return self._file.tell()

    def close(self) -> None:
        """As of the file."""
        self._file.close()

    def seekable(self) -> bool:
        """Always: every storage gives seekable files."""
        return True
