"""WebDataset tars, plain, gzip or zstd: indexed by headers alone, members read by offset.

Offsets are into the uncompressed archive. In a compressed tar reaching one costs decompressing from
the last place that reading can start from, so a unit is read in one pass, and the next one goes on
where it ended.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import BinaryIO, Protocol, cast

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Problem, Reject, Shard, Unit
from transforms.shards.archive import (
    STREAM_ERRORS,
    Archive,
    open_archive,
)
from transforms.shards.base import Entry, RawScreen, ShardIndex, Source
from transforms.shards.kept import MIN_BYTES
from transforms.shards.members import pair_members
from transforms.shards.names import is_ignored, readable_name
from transforms.shards.tar_pass import one_pass, slice_of
from transforms.storage import Storage
from transforms.storage.base import HEADER_READ_AHEAD, READ_AHEAD

_BLOCK = 512
_WALK_ERRORS = (*STREAM_ERRORS, tarfile.TarError, ValueError, OverflowError, RecursionError)


class _Members(Protocol):
    """The attribute of `tarfile.TarFile` that its type stub leaves out."""

    members: list[tarfile.TarInfo]


def index_tar(shard: Shard, storage: Storage) -> ShardIndex:
    """Members of a tar in archive order, from its headers.

    GNU and PAX names of any length are read; names that are not UTF-8 are read as Windows-1252.
    A cut archive keeps every member before the cut, whatever byte the cut is at.
    """
    if shard.byte_size == 0:
        return ShardIndex((), (Problem(None, RejectReason.SHARD_EMPTY, "0 bytes"),))
    entries: list[Entry] = []
    problems: list[Problem] = []
    points = b""
    try:
        with open_archive(shard, storage, HEADER_READ_AHEAD) as archive:
            for item in _walk(archive):
                if isinstance(item, Problem):
                    problems.append(item)
                else:
                    entries.append(item)
            if not problems and shard.byte_size >= MIN_BYTES:
                points = archive.points(shard.byte_size)
    except MemberRejected as error:
        problems.append(Problem(None, error.reason, error.detail))
    except STREAM_ERRORS as error:
        detail = f"not a readable tar: {error}"
        problems.append(Problem(None, RejectReason.SHARD_UNREADABLE, detail))
    return pair_members(entries, problems).read_through(points)


def read_tar(unit: Unit, source: Source) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order."""
    return one_pass(unit.members, source)


def read_tar_member(source: Source, span: ByteRange) -> bytes:
    """The bytes of one file in the archive.

    Raises:
        MemberRejected: if the archive is cut or damaged there.
    """
    ahead = max(1, min(READ_AHEAD, span.size))
    with open_archive(source.shard, source.storage, ahead, source.points) as archive:
        return slice_of(archive, span)


def _walk(archive: Archive) -> Iterator[Entry | Problem]:
    """Every wanted file, and a last problem where the archive does not end as it should."""
    last = None
    try:
        tar = tarfile.open(  # noqa: SIM115 - closing it is the archive's business
            fileobj=cast("BinaryIO", archive), mode="r:", errors="surrogateescape", encoding="utf-8"
        )
        while (info := tar.next()) is not None:
            _forget(tar)
            last = info.offset
            if info.size < 0 or tar.offset <= info.offset:
                raise tarfile.ReadError("negative size")
            whole = archive.holds(info.offset_data + _stored(info))
            if item := _entry(info, whole=whole):
                yield item
            if not whole:
                return
        yield from _check_end(archive, tar.offset)
    except _WALK_ERRORS as error:
        yield _damage(archive, last, error)


def _forget(tar: tarfile.TarFile) -> None:
    """Drop the headers read so far: `tarfile` keeps them all, gigabytes for a million members."""
    cast("_Members", tar).members.clear()


def _stored(info: tarfile.TarInfo) -> int:
    return info.size if info.isreg() and not info.issparse() else 0


def _entry(info: tarfile.TarInfo, *, whole: bool) -> Entry | Problem | None:
    name, flags = readable_name(info.name)
    if not whole:
        detail = f"cut inside this member of {info.size} bytes; whatever followed is lost"
        return Problem(name, RejectReason.SHARD_TRUNCATED, detail)
    if info.isdir() or is_ignored(name):
        return None
    if not info.isreg() or info.issparse():
        kind = "a sparse file" if info.issparse() else "a link or device"
        return Problem(name, RejectReason.MEMBER_UNSUPPORTED, f"{kind}, not a file with content")
    return Entry(ByteRange(name, info.offset_data, info.size), flags)


def _check_end(archive: Archive, offset: int) -> Iterator[Problem]:
    """`tarfile` ends quietly at a cut or damaged header; only a block of zeros is a real end."""
    cut = archive.hit_end  # early Pythons of 3.11 end quietly at an extended header that is cut
    archive.seek(offset)
    block = archive.read(_BLOCK)
    if len(block) < _BLOCK:
        detail = f"no end mark: cut after byte {offset}; whatever followed is lost"
        yield Problem(None, RejectReason.SHARD_TRUNCATED, detail)
    elif any(block):
        reason = RejectReason.SHARD_TRUNCATED if cut else RejectReason.SHARD_UNREADABLE
        what = "cut" if cut else "damaged"
        yield Problem(None, reason, f"{what} header at byte {offset}; whatever follows is lost")


def _damage(archive: Archive, last: int | None, error: BaseException) -> Problem:
    cut = isinstance(error, EOFError) or (archive.hit_end and last is not None)
    reason = RejectReason.SHARD_TRUNCATED if cut else RejectReason.SHARD_UNREADABLE
    what = "cut" if cut else "not readable as a tar"
    where = "" if last is None else f" after the member at byte {last}"
    return Problem(None, reason, f"{what}{where}: {error}")
