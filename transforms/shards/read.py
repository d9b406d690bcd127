"""The bytes of the screens of a unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected, StorageError
from schemas.records import ByteRange, Member, Reject, Shard, ShardKind, Unit
from transforms.shards.base import RawScreen, Source, state_of
from transforms.shards.defaults import defaults_of
from transforms.shards.folder import read_folder, read_folder_member, read_folder_sidecar
from transforms.shards.index import FOLDERS
from transforms.shards.kept import IndexStore
from transforms.shards.parquet import read_parquet, read_parquet_member
from transforms.shards.tar import read_tar, read_tar_member
from transforms.shards.zip_archive import read_zip, read_zip_member
from transforms.storage import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    S3Address,
    storage_for,
)

_READERS = {
    ShardKind.TAR: read_tar,
    ShardKind.FOLDER: read_folder,
    ShardKind.WEBVOYAGER: read_folder,
    ShardKind.PARQUET: read_parquet,
    ShardKind.ZIP: read_zip,
}


def read_unit(
    unit: Unit, s3_endpoint: S3Address = None, kept: IndexStore | None = None
) -> Iterator[RawScreen | Reject]:
    """Exactly one item for each member, in order: its bytes, or why there are none.

    A shard that is gone or has changed since the plan rejects every member that was not read yet.

    Args:
        unit: a slice of a shard.
        s3_endpoint: address of an S3-compatible server.
        kept: kept indexes, which say where a compressed shard can be read on.

    Raises:
        StorageError: if the store does not answer; the unit can be read again later.
    """
    if not unit.members:
        return
    done = 0
    try:
        source = _source(unit.shard, s3_endpoint, kept)
        for item in _READERS[unit.shard.kind](unit, source):
            done += 1
            yield _with_defaults(item, unit.shard)
    except (ObjectChangedError, ObjectMissingError) as error:
        yield from _rejects(unit, done, RejectReason.SHARD_CHANGED, error)
    except ObjectDeniedError as error:
        yield from _rejects(unit, done, RejectReason.MEMBER_UNREADABLE, error)
    except MemberRejected as error:
        yield from _rejects(unit, done, error.reason, error)
    except OSError as error:
        yield from _rejects(unit, done, RejectReason.SHARD_UNREADABLE, error)


def read_member(
    shard: Shard, member: Member, s3_endpoint: S3Address = None, kept: IndexStore | None = None
) -> bytes:
    """The image bytes of one member; the caller compares their hash with the screen's id.

    Raises:
        StorageError: if they cannot be read, also when the shard has changed.
    """
    try:
        source = _source(shard, s3_endpoint, kept, is_planned=False)
        if shard.kind is ShardKind.PARQUET:
            return read_parquet_member(source, member)
        return _read_span(source, member.image)
    except (MemberRejected, OSError) as error:
        raise StorageError(f"{shard.uri}: cannot read {member.name}: {error}") from error


def read_sidecar(shard: Shard, member: Member, s3_endpoint: S3Address = None) -> bytes | None:
    """The sidecar of one member without its image, of any shard but Parquet; None = it has none.

    Raises:
        StorageError: if it cannot be read, also when the shard has changed.
    """
    if member.sidecar is None:
        return None
    try:
        source = _source(shard, s3_endpoint, None, is_planned=False)
        if shard.kind in FOLDERS:
            return read_folder_sidecar(source, member)
        return _read_span(source, member.sidecar)
    except (MemberRejected, OSError) as error:
        raise StorageError(f"{shard.uri}: cannot read {member.sidecar.name}: {error}") from error


def _read_span(source: Source, span: ByteRange) -> bytes:
    if source.shard.kind is ShardKind.TAR:
        return read_tar_member(source, span)
    if source.shard.kind is ShardKind.ZIP:
        return read_zip_member(source, span)
    return read_folder_member(source, span)


def member_of_row(name: str, byte_offset: int | None, byte_size: int, row: int | None) -> Member:
    """The member that a row of `screens` names, for `read_member`; without its sidecar.

    Args:
        name: column `member`.
        byte_offset: column of this name; None outside tars and zips.
        byte_size: column of this name.
        row: column of this name; None outside Parquet.
    """
    return Member(name, ByteRange(name, byte_offset, byte_size), row=row)


def _source(
    shard: Shard, s3_endpoint: S3Address, kept: IndexStore | None, *, is_planned: bool = True
) -> Source:
    """The shard, ready to be read; one of a plan must still be what it was then.

    Raises:
        ObjectChangedError: if it is not.
    """
    storage = storage_for(shard.uri, s3_endpoint)
    if shard.kind in FOLDERS:
        return Source(shard, storage, state="")
    now = storage.stat(shard.uri)
    if is_planned and (now.size != shard.byte_size or now.version != shard.version):
        raise ObjectChangedError(
            f"{shard.uri}: {now.size} bytes {now.version} now, "
            f"{shard.byte_size} bytes {shard.version} when the job was planned"
        )
    shard, state = replace(shard, byte_size=now.size), state_of(now)
    points = kept.points(shard, state) if kept and shard.kind is ShardKind.TAR else b""
    return Source(shard, storage, state, points)


def _with_defaults(item: RawScreen | Reject, shard: Shard) -> RawScreen | Reject:
    if isinstance(item, Reject) or not shard.defaults:
        return item
    return replace(item, defaults=defaults_of(shard, item.member.name))


def _rejects(unit: Unit, done: int, reason: RejectReason, error: Exception) -> Iterator[Reject]:
    for member in unit.members[done:]:
        yield Reject(Stage.READ, reason, str(error), member.name)
