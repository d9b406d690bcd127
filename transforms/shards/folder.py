"""Folders and prefixes of images: one shard, at any depth, with optional sidecars."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Member, Problem, Reject, Shard, ShardKind, Unit
from transforms.shards.base import Entry, RawScreen, ShardIndex, Source
from transforms.shards.folder_sidecars import FolderSidecars, read_file
from transforms.shards.folder_tables import join_messages, join_tables
from transforms.shards.members import pair_members
from transforms.shards.names import (
    DEAD_LINK,
    MESSAGES_NAME,
    base_name,
    is_ignored,
    is_metadata,
    readable_name,
)
from transforms.shards.webvoyager import LOG_NAME
from transforms.storage import Storage


def index_folder(shard: Shard, storage: Storage) -> ShardIndex:
    """Members below the folder, by name; a member's name is its path from the folder.

    A JSON file beside an image is its sidecar; else the nearest metadata table above that names it;
    else, in a WebVoyager folder, the messages of its task.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    tables: list[ByteRange] = []
    messages: list[ByteRange] = []
    is_voyage = shard.kind is ShardKind.WEBVOYAGER
    for file in storage.list(shard.uri):
        name, flags = readable_name(file.uri[len(shard.uri) :])
        span = ByteRange(name, None, file.size)
        if flags:
            detail = "the file name is not UTF-8; rename it"
            problems.append(Problem(name, RejectReason.MEMBER_UNREADABLE, detail))
        elif is_ignored(name) or (is_voyage and base_name(name) == LOG_NAME):
            continue
        elif is_metadata(name):
            tables.append(span)
        elif is_voyage and base_name(name) == MESSAGES_NAME:
            messages.append(span)
        else:
            entries.append(Entry(span))
    problems += _dead_links(shard, storage)
    index = join_tables(pair_members(entries, problems), tables, shard, storage)
    return join_messages(index, messages)


def _dead_links(shard: Shard, storage: Storage) -> Iterator[Problem]:
    for uri in storage.dead_links(shard.uri):
        name, _ = readable_name(uri[len(shard.uri) :])
        if not is_ignored(name):
            yield Problem(name, RejectReason.MEMBER_UNREADABLE, DEAD_LINK)


def read_folder(unit: Unit, source: Source) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order."""
    sidecars = FolderSidecars(unit.shard, unit.members, source.storage)
    for member in unit.members:
        try:
            sidecar = sidecars.fetch(member)
            yield RawScreen(member, read_file(unit.shard, member.image, source.storage), sidecar)
        except MemberRejected as error:
            yield Reject(
                Stage.READ, error.reason, error.detail, member.name, screen_id=error.sha256
            )


def read_folder_member(source: Source, span: ByteRange) -> bytes:
    """The bytes of one file of the folder.

    Raises:
        MemberRejected: if the file is gone, may not be read, or has another size.
    """
    return read_file(source.shard, span, source.storage)


def read_folder_sidecar(source: Source, member: Member) -> bytes | None:
    """The sidecar of one member, wherever it stands.

    Raises:
        MemberRejected: as `read_folder_member`.
    """
    return FolderSidecars(source.shard, (member,), source.storage).fetch(member)
