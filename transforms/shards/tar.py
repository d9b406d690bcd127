"""WebDataset tars, plain or gzip: indexed by headers alone, members read by offset.

Offsets are into the uncompressed archive. In a gzip tar reaching one costs decompressing all that
comes before, so a unit is then read in one pass, holding its members in memory.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, TypeAlias, cast

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Member, Problem, Reject, Shard, Unit
from transforms.shards.archive import STREAM_ERRORS, Archive, open_archive
from transforms.shards.base import RawScreen, ShardIndex
from transforms.shards.members import pair_members
from transforms.shards.names import is_ignored, readable_name
from transforms.storage import Storage
from transforms.storage.base import HEADER_READ_AHEAD

_BLOCK = 512
_WALK_ERRORS = (*STREAM_ERRORS, tarfile.TarError, ValueError, OverflowError, RecursionError)
_Fetch: TypeAlias = "Callable[[ByteRange], bytes]"


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
    entries: list[ByteRange] = []
    problems: list[Problem] = []
    try:
        with open_archive(shard, storage, HEADER_READ_AHEAD) as archive:
            for item in _walk(archive):
                if isinstance(item, Problem):
                    problems.append(item)
                else:
                    entries.append(item)
    except MemberRejected as error:
        problems.append(Problem(None, RejectReason(error.reason), error.detail))
    except STREAM_ERRORS as error:
        detail = f"not a readable tar: {error}"
        problems.append(Problem(None, RejectReason.SHARD_UNREADABLE, detail))
    return pair_members(entries, problems)


def read_tar(unit: Unit, storage: Storage) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order."""
    with open_archive(unit.shard, storage) as archive:
        fetch = _read_ahead(archive, unit.members) if archive.compressed else _slicer(archive)
        for member in unit.members:
            try:
                sidecar = fetch(member.sidecar) if member.sidecar else None
                yield RawScreen(member, fetch(member.image), sidecar)
            except MemberRejected as error:
                reason = RejectReason(error.reason)
                yield Reject(Stage.READ, reason, error.detail, member.name)


def read_tar_member(shard: Shard, member: Member, storage: Storage) -> bytes:
    """The image bytes of one member.

    Raises:
        MemberRejected: if the archive is cut or damaged there.
    """
    with open_archive(shard, storage, member.image.size or 1) as archive:
        return _slicer(archive)(member.image)


def _walk(archive: Archive) -> Iterator[ByteRange | Problem]:
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


def _entry(info: tarfile.TarInfo, *, whole: bool) -> ByteRange | Problem | None:
    name, _ = readable_name(info.name)
    if not whole:
        detail = f"cut inside this member of {info.size} bytes; whatever followed is lost"
        return Problem(name, RejectReason.SHARD_TRUNCATED, detail)
    if info.isdir() or is_ignored(name):
        return None
    if not info.isreg() or info.issparse():
        kind = "a sparse file" if info.issparse() else "a link or device"
        return Problem(name, RejectReason.MEMBER_UNSUPPORTED, f"{kind}, not a file with content")
    return ByteRange(name, info.offset_data, info.size)


def _check_end(archive: Archive, offset: int) -> Iterator[Problem]:
    """`tarfile` ends quietly at a cut or damaged header; only a block of zeros is a real end."""
    archive.seek(offset)
    block = archive.read(_BLOCK)
    if len(block) < _BLOCK:
        detail = f"no end mark: cut after byte {offset}; whatever followed is lost"
        yield Problem(None, RejectReason.SHARD_TRUNCATED, detail)
    elif any(block):
        detail = f"damaged header at byte {offset}; whatever follows is lost"
        yield Problem(None, RejectReason.SHARD_UNREADABLE, detail)


def _damage(archive: Archive, last: int | None, error: BaseException) -> Problem:
    cut = isinstance(error, EOFError) or (archive.hit_end and last is not None)
    reason = RejectReason.SHARD_TRUNCATED if cut else RejectReason.SHARD_UNREADABLE
    what = "cut" if cut else "not readable as a tar"
    where = "" if last is None else f" after the member at byte {last}"
    return Problem(None, reason, f"{what}{where}: {error}")


def _slicer(archive: Archive) -> _Fetch:
    def fetch(span: ByteRange) -> bytes:
        try:
            data = archive.slice(span.offset or 0, span.size)
        except STREAM_ERRORS as error:
            detail = f"{span.name}: {type(error).__name__}: {error}"
            raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail) from error
        if len(data) < span.size:
            detail = f"{span.name}: {len(data)} of {span.size} bytes, the archive is shorter"
            raise MemberRejected(RejectReason.SHARD_CHANGED, detail)
        return data

    return fetch


def _read_ahead(archive: Archive, members: tuple[Member, ...]) -> _Fetch:
    """Everything the members need, in one pass from front to back."""
    spans = {span for member in members for span in (member.image, member.sidecar) if span}
    slice_of = _slicer(archive)
    held: dict[ByteRange, bytes | MemberRejected] = {}
    for span in sorted(spans, key=lambda span: span.offset or 0):
        try:
            held[span] = slice_of(span)
        except MemberRejected as error:
            held[span] = error

    def fetch(span: ByteRange) -> bytes:
        data = held[span]
        if isinstance(data, MemberRejected):
            raise data
        return data

    return fetch
