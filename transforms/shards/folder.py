"""Folders and prefixes of images: one shard, at any depth, with optional sidecars."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Member, Problem, Reject, Shard, Unit
from transforms.shards.base import RawScreen, ShardIndex
from transforms.shards.members import pair_members
from transforms.shards.names import is_ignored, readable_name
from transforms.storage import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    Storage,
    join_uri,
)


def index_folder(shard: Shard, storage: Storage) -> ShardIndex:
    """Members below the folder, by name; a member's name is its path from the folder."""
    entries: list[ByteRange] = []
    problems: list[Problem] = []
    for file in storage.list(shard.uri):
        raw = file.uri[len(shard.uri) :]
        name, undecodable = readable_name(raw)
        if undecodable:
            detail = "the file name is not UTF-8; rename it"
            problems.append(Problem(name, RejectReason.MEMBER_UNREADABLE, detail))
        elif not is_ignored(name):
            entries.append(ByteRange(name, None, file.size))
    return pair_members(entries, problems)


def read_folder(unit: Unit, storage: Storage) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order."""
    for member in unit.members:
        try:
            sidecar = _read(unit.shard, member.sidecar, storage) if member.sidecar else None
            yield RawScreen(member, _read(unit.shard, member.image, storage), sidecar)
        except MemberRejected as error:
            yield Reject(Stage.READ, error.reason, error.detail, member.name)


def read_folder_member(shard: Shard, member: Member, storage: Storage) -> bytes:
    """The image bytes of one member.

    Raises:
        MemberRejected: if the file is gone, may not be read, or has another size.
    """
    return _read(shard, member.image, storage)


def _read(shard: Shard, span: ByteRange, storage: Storage) -> bytes:
    try:
        data = storage.read(join_uri(shard.uri, span.name))
    except (ObjectMissingError, ObjectChangedError) as error:
        raise MemberRejected(RejectReason.SHARD_CHANGED, str(error)) from error
    except ObjectDeniedError as error:
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, str(error)) from error
    if len(data) != span.size:
        detail = f"{span.name}: {len(data)} bytes now, {span.size} when the job was planned"
        raise MemberRejected(RejectReason.SHARD_CHANGED, detail)
    return data
