"""The members of a unit of a tar, in one pass from front to back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.ids import sha256_hex
from schemas.records import ByteRange, Member, Reject
from transforms.shards.archive import STREAM_ERRORS, Archive, is_compressed, open_archive
from transforms.shards.base import RawScreen, Source
from transforms.shards.held import BENCH
from transforms.storage.base import READ_AHEAD

_NEAR = 4 * 2**20
"""How far from its image a sidecar may lie to be read in the same pass: what is held meanwhile."""

_BESIDE = 64 * 2**10
"""How far beyond the images of its unit: going further would pass those of the next unit by."""


def slice_of(archive: Archive, span: ByteRange) -> bytes:
    """The bytes of one file of the archive.

    Raises:
        MemberRejected: if the archive is cut or damaged there.
    """
    try:
        data = archive.slice(span.offset or 0, span.size)
    except STREAM_ERRORS as error:
        detail = f"{span.name}: {type(error).__name__}: {error}"
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail) from error
    if len(data) < span.size:
        detail = f"{span.name}: {len(data)} of {span.size} bytes, the archive is shorter"
        raise MemberRejected(RejectReason.SHARD_CHANGED, detail)
    return data


def one_pass(members: tuple[Member, ...], source: Source) -> Iterator[RawScreen | Reject]:
    """One item for each member, in order, holding few of them at a time.

    Sidecars that lie far from their images are read first, by a reader of their own: a tar may have
    all its images, then all its sidecars, and going to and fro costs a request each time, or
    decompressing what is between.
    """
    compressed = is_compressed(source.shard, source.storage)
    far = [m.sidecar for m in members if m.sidecar and not _is_near(m.image, m.sidecar, members)]
    held = dict(_read(far, source, compressed=compressed))
    near = [m.image for m in members]
    near += [m.sidecar for m in members if m.sidecar and m.sidecar not in held]
    stream = _read(near, source, compressed=compressed)
    for member in members:
        wanted = [span for span in (member.image, member.sidecar) if span]
        while any(span not in held for span in wanted):
            span, data = next(stream)
            held[span] = data
        yield _screen(member, held)
        held.pop(member.image)
    next(stream, None)  # nothing is left, but only now is its reader free for the next unit


def _screen(member: Member, held: dict[ByteRange, bytes | MemberRejected]) -> RawScreen | Reject:
    image = held[member.image]
    sidecar = held[member.sidecar] if member.sidecar else None
    for data in (image, sidecar):
        if isinstance(data, MemberRejected):
            digest = sha256_hex(image) if isinstance(image, bytes) else None
            return Reject(Stage.READ, data.reason, data.detail, member.name, screen_id=digest)
    return RawScreen(member, image, sidecar)  # type: ignore[arg-type] # rejects were returned


def _is_near(image: ByteRange, sidecar: ByteRange, members: tuple[Member, ...]) -> bool:
    first, second = sorted((image, sidecar), key=_offset)
    last = members[-1].image
    begin, end = _offset(members[0].image) - _BESIDE, _offset(last) + last.size + _BESIDE
    gap = _offset(second) - _offset(first) - first.size
    return gap <= _NEAR and begin <= _offset(sidecar) <= end


def _offset(span: ByteRange) -> int:
    return span.offset or 0


def _read(
    spans: list[ByteRange], source: Source, *, compressed: bool
) -> Iterator[tuple[ByteRange, bytes | MemberRejected]]:
    """Each span once, by offset."""
    ordered = sorted(set(spans), key=_offset)
    if not ordered:
        return
    with _archive(ordered, source, compressed=compressed) as archive:
        for span in ordered:
            try:
                yield span, slice_of(archive, span)
            except MemberRejected as error:
                yield span, error


def _archive(
    ordered: list[ByteRange], source: Source, *, compressed: bool
) -> AbstractContextManager[Archive]:
    """The archive, to be read from the first to the last span.

    A compressed one is left open for whoever goes on from there. Of a plain one no more is fetched
    than lies between, so that no neighbour of the unit is.
    """
    first, last = ordered[0], ordered[-1]
    shard, storage, points = source.shard, source.storage, source.points
    if compressed:
        key = f"tar\n{source.state}"
        return BENCH.lend(key, _offset(first), lambda: open_archive(shard, storage, points=points))
    extent = _offset(last) + last.size - _offset(first)
    return open_archive(shard, storage, max(1, min(READ_AHEAD, extent)))
