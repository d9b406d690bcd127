"""A tar shard as a seekable stream of its uncompressed bytes: plain, gzip or zstd."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import BinaryIO, Protocol

import zstandard

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.records import Shard
from transforms.shards.gzip_stream import gzip_points, gzip_stream
from transforms.shards.zstd_stream import ZstdStream, is_zstd
from transforms.storage import Storage
from transforms.storage.base import READ_AHEAD

STREAM_ERRORS = (EOFError, zlib.error, zstandard.ZstdError, OSError)
"""What reading a cut or damaged compressed stream, or a bad disk, raises."""

GZIP_MAGIC = b"\x1f\x8b"
_OTHER = {b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_MAX_HEADER = 16 * 2**20
_SIZE_UNKNOWN = -1
_MAGIC_BYTES = 6


class Stream(Protocol):
    """Uncompressed bytes by offset."""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset."""

    def tell(self) -> int:
        """The offset."""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; fewer than asked may come before the end."""

    def close(self) -> None:
        """Give the memory back."""


class Archive(io.RawIOBase):
    """The uncompressed bytes of a tar, for `tarfile` and for reading members by offset.

    Attributes:
        compressed: whether going back costs decompressing again.
        hit_end: whether a read ever got fewer bytes than it asked for.
    """

    def __init__(self, stream: Stream, file: BinaryIO, size: int = _SIZE_UNKNOWN) -> None:
        super().__init__()
        self._stream = stream
        self._file = file
        self._size = size
        self.compressed = size == _SIZE_UNKNOWN
        self.hit_end = False

    def points(self, compressed_size: int) -> bytes:
        """Places from which reading can start; empty where any offset is one.

        Of a zstd file those seen until now; a gzip file is gone through once more.
        """
        if isinstance(self._stream, ZstdStream):
            return self._stream.points()
        if isinstance(self._stream, gzip.GzipFile):
            self._file.seek(0)
            return gzip_points(self._file, compressed_size)
        return b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an uncompressed offset."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """The uncompressed offset."""
        return self._stream.tell()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes of headers.

        Raises:
            tarfile.ReadError: if a damaged header asks for an absurd amount.
        """
        if not 0 <= size <= _MAX_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        data = self._whole(size)
        self.hit_end |= len(data) < size
        return data

    def slice(self, offset: int, size: int) -> bytes:
        """`size` bytes at an uncompressed offset, fewer where the archive ends."""
        self._stream.seek(offset)
        return self._whole(size)

    def read_some(self, size: int) -> bytes:
        """From 1 to `size` bytes, none at the end; nothing that comes before damage is lost."""
        if isinstance(self._stream, gzip.GzipFile):
            return self._stream.read1(size)
        return self._stream.read(size)

    def holds(self, end: int) -> bool:
        """Whether the archive is at least `end` bytes long."""
        if not self.compressed:
            return end <= self._size
        try:
            return end == 0 or len(self.slice(end - 1, 1)) == 1
        except EOFError:
            return False

    def close(self) -> None:
        """Give the stream's memory back."""
        if not self.closed:
            self._stream.close()
            self._file.close()
        super().close()

    def _whole(self, size: int) -> bytes:
        """Read on until there are `size` bytes or no more."""
        data = self._stream.read(size)
        if len(data) in {0, size}:
            return data
        pieces, missing = [data], size - len(data)
        while missing and (data := self._stream.read(missing)):
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)


def open_archive(
    shard: Shard, storage: Storage, read_ahead: int = READ_AHEAD, points: bytes = b""
) -> Archive:
    """The archive of a tar shard; compression is told by its first bytes, not by its name.

    Args:
        shard: the tar.
        storage: where it is.
        read_ahead: bytes fetched at once from a remote, uncompressed tar.
        points: of an earlier archive of the very same bytes.

    Raises:
        MemberRejected: SHARD_UNREADABLE if the compression is one that is not read.
    """
    magic = storage.read_range(shard.uri, 0, _MAGIC_BYTES, shard.version)
    other = next((name for start, name in _OTHER.items() if magic.startswith(start)), None)
    if other:
        detail = f"{other}-compressed; decompress it, or use gzip or zstd"
        raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail)
    zipped, framed = magic.startswith(GZIP_MAGIC), is_zstd(magic)
    ahead = READ_AHEAD if zipped or framed else read_ahead
    file = storage.open(shard.uri, shard.version, ahead)
    if framed:
        return Archive(ZstdStream(file, points), file)
    if zipped:
        return Archive(gzip_stream(file, shard.byte_size, points), file)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return Archive(file, file, size)


def is_compressed(shard: Shard, storage: Storage) -> bool:
    """Whether the shard's first bytes are those of gzip or zstd."""
    magic = storage.read_range(shard.uri, 0, _MAGIC_BYTES, shard.version)
    return magic.startswith(GZIP_MAGIC) or is_zstd(magic)
