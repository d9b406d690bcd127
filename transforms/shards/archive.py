"""A tar shard as a seekable stream of its uncompressed bytes, plain or gzip."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.records import Shard
from transforms.storage import Storage
from transforms.storage.base import HEADER_READ_AHEAD, READ_AHEAD

STREAM_ERRORS = (EOFError, zlib.error, OSError)
"""What reading a cut or damaged gzip stream, or a bad disk, raises."""

_GZIP = b"\x1f\x8b"
_OTHER = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_MAX_HEADER = 16 * 2**20
_GZIP_SIZE_UNKNOWN = -1


class Archive(io.RawIOBase):
    """The uncompressed bytes of a tar, for `tarfile` and for reading members by offset.

    Attributes:
        compressed: whether going back costs decompressing again from the start.
        hit_end: whether a read ever got fewer bytes than it asked for.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._file = file
        self._size = size
        self.compressed = size == _GZIP_SIZE_UNKNOWN
        self.hit_end = False

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an uncompressed offset."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The uncompressed offset."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes of headers.

        Raises:
            tarfile.ReadError: if a damaged header asks for an absurd amount.
        """
        if not 0 <= size <= _MAX_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        data = self._file.read(size)
        self.hit_end |= len(data) < size
        return data

    def slice(self, offset: int, size: int) -> bytes:
        """`size` bytes at an uncompressed offset, fewer where the archive ends."""
        self._file.seek(offset)
        return self._file.read(size)

    def holds(self, end: int) -> bool:
        """Whether the archive is at least `end` bytes long."""
        if not self.compressed:
            return end <= self._size
        try:
            return end == 0 or len(self.slice(end - 1, 1)) == 1
        except EOFError:
            return False


@contextmanager
def open_archive(shard: Shard, storage: Storage, read_ahead: int = READ_AHEAD) -> Iterator[Archive]:
    """The archive of a tar shard; compression is told by its first bytes, not by its name.

    Args:
        shard: the tar.
        storage: where it is.
        read_ahead: bytes fetched at once from a remote, uncompressed tar.

    Raises:
        MemberRejected: SHARD_UNREADABLE if the compression is one that is not read.
    """
    with storage.open(shard.uri, shard.version, HEADER_READ_AHEAD) as probe:
        magic = probe.read(6)
    other = next((name for start, name in _OTHER.items() if magic.startswith(start)), None)
    if other:
        detail = f"{other}-compressed; decompress it, or use gzip"
        raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail)
    zipped = magic.startswith(_GZIP)
    with storage.open(shard.uri, shard.version, READ_AHEAD if zipped else read_ahead) as file:
        if not zipped:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            yield Archive(file, size)
            return
        with gzip.GzipFile(fileobj=file) as plain:
            yield Archive(cast("BinaryIO", plain), _GZIP_SIZE_UNKNOWN)
