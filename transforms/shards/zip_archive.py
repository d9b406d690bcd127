"""Zip shards: their directory lies at the end, so any member is reached without the others."""

from __future__ import annotations

import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from lzma import LZMAError

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Problem, Reject, Shard, Unit
from transforms.shards.base import Entry, RawScreen, ShardIndex, Source
from transforms.shards.held import BENCH
from transforms.shards.members import pair_members
from transforms.shards.names import is_ignored
from transforms.storage import Storage

_ERRORS = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, NotImplementedError)
_READ_AHEAD = 2**20
_ENCRYPTED, _UTF8 = 0x1, 0x800
_METHODS = frozenset(
    {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
)
_BOMB_RATIO, _BOMB_BYTES = 500, 64 * 2**20
"""No picture above 64 MiB is packed 500 to 1, unless to break a reader: deflate ends at 1032."""

_BOX_DRAWING = "BOX DRAWINGS"


def index_zip(shard: Shard, storage: Storage) -> ShardIndex:
    """Members of a zip in the order of its directory.

    Zip64, data descriptors and the compressions of Python's `zipfile` are read. An encrypted entry,
    another compression, a link or a bomb is a problem of its own; a zip without its directory,
    which lies at the end, is one problem as a whole.
    """
    if shard.byte_size == 0:
        return ShardIndex((), (Problem(None, RejectReason.SHARD_EMPTY, "0 bytes"),))
    entries: list[Entry] = []
    problems: list[Problem] = []
    try:
        reader = _Reader(shard, storage)
    except MemberRejected as error:
        return ShardIndex((), (Problem(None, error.reason, error.detail),))
    for info in reader.entries():
        name, flags = entry_name(info)
        if info.is_dir() or is_ignored(name):
            continue
        refusal = _refusal(info)
        if refusal:
            problems.append(Problem(name, *refusal))
        else:
            span = ByteRange(name, info.header_offset, info.file_size)
            entries.append(Entry(span, flags))
    reader.close()
    return pair_members(entries, problems)


def read_zip(unit: Unit, source: Source) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order."""
    with _lend(source) as zipped:
        for member in unit.members:
            try:
                sidecar = zipped.read(member.sidecar) if member.sidecar else None
                yield RawScreen(member, zipped.read(member.image), sidecar)
            except MemberRejected as error:
                yield Reject(Stage.READ, error.reason, error.detail, member.name)


def read_zip_member(source: Source, span: ByteRange) -> bytes:
    """The bytes of one entry.

    Raises:
        MemberRejected: if it is not there or damaged.
    """
    with _lend(source) as zipped:
        return zipped.read(span)


def entry_name(info: zipfile.ZipInfo) -> tuple[str, tuple[str, ...]]:
    """The name of an entry, and a flag where its encoding had to be guessed.

    An entry says whether its name is UTF-8; if not, the standard says code page 437. In practice
    tools write UTF-8 without saying so (`name_utf8`), or code page 850 (`name_cp850`), which has
    accented capitals where 437 has the pieces of boxes.
    """
    if info.flag_bits & _UTF8 or info.filename.isascii():
        return info.filename, ()
    octets = info.filename.encode("cp437")
    try:
        return octets.decode(), ("name_utf8",)
    except UnicodeDecodeError:
        pass
    western = octets.decode("cp850")
    if _has_boxes(info.filename) and not _has_boxes(western):
        return western, ("name_cp850",)
    return info.filename, ("name_cp437",)


def _has_boxes(text: str) -> bool:
    return any(unicodedata.name(sign, "").startswith(_BOX_DRAWING) for sign in text)


def _refusal(info: zipfile.ZipInfo) -> tuple[RejectReason, str] | None:
    if info.flag_bits & _ENCRYPTED:
        return RejectReason.MEMBER_UNSUPPORTED, "encrypted; unpack it, or zip it without a password"
    if info.compress_type not in _METHODS:
        detail = f"compressed by method {info.compress_type}, not by deflate, bzip2 or lzma"
        return RejectReason.MEMBER_UNSUPPORTED, detail
    if stat.S_ISLNK(info.external_attr >> 16):
        return RejectReason.MEMBER_UNSUPPORTED, "a link, not a file with content"
    if info.file_size > _BOMB_BYTES and info.file_size > info.compress_size * _BOMB_RATIO:
        detail = f"{info.file_size} bytes packed into {info.compress_size}: a bomb, not a picture"
        return RejectReason.IMAGE_TOO_LARGE, detail
    return None


class _Reader:
    """An open zip; entries are found by the offset of their header, which is unique."""

    def __init__(self, shard: Shard, storage: Storage) -> None:
        """Read the directory.

        Raises:
            MemberRejected: SHARD_UNREADABLE if there is none that can be read.
        """
        self._file = storage.open(shard.uri, shard.version, _READ_AHEAD)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except (*_ERRORS, ValueError) as error:
            self._file.close()
            detail = f"not a readable zip, or cut: its directory is at its end: {error}"
            raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail) from error
        self._by_offset = {info.header_offset: info for info in self._zip.infolist()}

    def entries(self) -> list[zipfile.ZipInfo]:
        """All entries, in the order of the directory."""
        return self._zip.infolist()

    def tell(self) -> int:
        """Always 0: any entry can be read next."""
        return 0

    def close(self) -> None:
        """Close the file."""
        self._zip.close()
        self._file.close()

    def read(self, span: ByteRange) -> bytes:
        """The bytes of an entry, never more than its directory promised, checked by their CRC.

        Raises:
            MemberRejected: if the entry is gone or damaged.
        """
        info = self._by_offset.get(span.offset or 0)
        if info is None or info.file_size != span.size:
            detail = f"{span.name}: no such entry any more"
            raise MemberRejected(RejectReason.SHARD_CHANGED, detail)
        try:
            # Asked for so many bytes, `zipfile` unpacks no more; `ZipFile.read` would unpack all.
            with self._zip.open(info) as entry:
                return entry.read(info.file_size)
        except (*_ERRORS, RuntimeError, ValueError) as error:
            detail = f"{span.name}: {type(error).__name__}: {error}"
            raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail) from error


def _lend(source: Source) -> AbstractContextManager[_Reader]:
    """The directory of a large zip takes seconds to read: it stays for the next unit."""
    return BENCH.lend(f"zip\n{source.state}", 0, lambda: _Reader(source.shard, source.storage))
