"""The bytes of the screens of a unit."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected, StorageError
from schemas.records import ByteRange, Member, Reject, Shard, ShardKind, Unit
from transforms.shards.base import RawScreen
from transforms.shards.folder import read_folder, read_folder_member
from transforms.shards.parquet import read_parquet, read_parquet_member
from transforms.shards.tar import read_tar, read_tar_member
from transforms.storage import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    S3Address,
    Storage,
    storage_for,
)

_READERS = {
    ShardKind.TAR: read_tar,
    ShardKind.FOLDER: read_folder,
    ShardKind.PARQUET: read_parquet,
}
_MEMBER_READERS = {
    ShardKind.TAR: read_tar_member,
    ShardKind.FOLDER: read_folder_member,
    ShardKind.PARQUET: read_parquet_member,
}


def read_unit(unit: Unit, s3_endpoint: S3Address = None) -> Iterator[RawScreen | Reject]:
    """Exactly one item for each member, in order: its bytes, or why there are none.

    A shard that is gone or has changed since the plan rejects every member that was not read yet.

    Args:
        unit: a slice of a shard.
        s3_endpoint: address of an S3-compatible server.

    Raises:
        StorageError: if the store does not answer; the unit can be read again later.
    """
    if not unit.members:
        return
    storage = storage_for(unit.shard.uri, s3_endpoint)
    done = 0
    try:
        _check_unchanged(unit.shard, storage)
        for item in _READERS[unit.shard.kind](unit, storage):
            done += 1
            yield item
    except (ObjectChangedError, ObjectMissingError) as error:
        yield from _rejects(unit, done, RejectReason.SHARD_CHANGED, error)
    except ObjectDeniedError as error:
        yield from _rejects(unit, done, RejectReason.MEMBER_UNREADABLE, error)
    except MemberRejected as error:
        yield from _rejects(unit, done, error.reason, error)
    except OSError as error:
        yield from _rejects(unit, done, RejectReason.SHARD_UNREADABLE, error)


def read_member(shard: Shard, member: Member, s3_endpoint: S3Address = None) -> bytes:
    """The image bytes of one member; the caller compares their hash with the screen's id.

    Raises:
        StorageError: if they cannot be read, also when the shard has changed.
    """
    storage = storage_for(shard.uri, s3_endpoint)
    try:
        return _MEMBER_READERS[shard.kind](shard, member, storage)
    except (MemberRejected, OSError) as error:
        raise StorageError(f"{shard.uri}: cannot read {member.name}: {error}") from error


def member_of_row(name: str, byte_offset: int | None, byte_size: int, row: int | None) -> Member:
    """The member that a row of `screens` names, for `read_member`; without its sidecar.

    Args:
        name: column `member`.
        byte_offset: column of this name; None outside tars.
        byte_size: column of this name.
        row: column of this name; None outside Parquet.
    """
    return Member(name, ByteRange(name, byte_offset, byte_size), row=row)


def _check_unchanged(shard: Shard, storage: Storage) -> None:
    if shard.kind is ShardKind.FOLDER:
        return
    now = storage.stat(shard.uri)
    if now.size != shard.byte_size or now.version != shard.version:
        raise ObjectChangedError(
            f"{shard.uri}: {now.size} bytes {now.version} now, "
            f"{shard.byte_size} bytes {shard.version} when the job was planned"
        )


def _rejects(unit: Unit, done: int, reason: RejectReason, error: Exception) -> Iterator[Reject]:
    for member in unit.members[done:]:
        yield Reject(Stage.READ, reason, str(error), member.name)
