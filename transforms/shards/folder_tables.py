"""What metadata tables and agents' messages say is joined to the images of a folder."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from schemas.codes import RejectReason
from schemas.errors import StorageError
from schemas.records import ByteRange, Member, Problem, Shard
from transforms.shards.base import ShardIndex
from transforms.shards.metadata import BadRecord, Record, Records, read_records
from transforms.shards.names import base_name, folder_of, is_metadata
from transforms.storage import Storage, join_uri, parent_uri

ABOVE = "../"
"""Beginning of the name of a table that lies beside the folder, not in it."""

NO_ROW = "metadata_row_missing"
"""Flag of an image that no row names, although a table lies above it."""


def table_uri(shard: Shard, name: str) -> str:
    """Where a file of the folder, or a table beside it, is."""
    if name.startswith(ABOVE):
        return join_uri(parent_uri(shard.uri), name.removeprefix(ABOVE))
    return join_uri(shard.uri, name)


def join_tables(
    index: ShardIndex, tables: Sequence[ByteRange], shard: Shard, storage: Storage
) -> ShardIndex:
    """Give each image without a sidecar of its own its row in the nearest table that names it.

    Rows and images that find no partner are both told: a row as a problem, an image by a flag. A
    table one level above the folder counts where one of its rows fits.
    """
    if not index.members:
        return _orphaned(index, tables)
    joined = _Joined(index.members)
    for table in sorted(tables, key=lambda table: (-table.name.count("/"), table.name)):
        records = read_records(table.name, table_uri(shard, table.name), table.size, storage)
        joined.take(table.name, records)
    for table in _tables_above(shard, storage):
        uri = table_uri(shard, table.name)
        joined.take_above(
            shard, table, read_records(base_name(table.name), uri, table.size, storage)
        )
    members = joined.members(tables)
    return replace(index, members=members, problems=(*index.problems, *joined.problems))


def join_messages(index: ShardIndex, messages: Iterable[ByteRange]) -> ShardIndex:
    """Give each screenshot without a sidecar the messages that lie in its folder."""
    beside = {folder_of(span.name): span for span in messages}
    if not beside:
        return index
    used: set[str] = set()
    members = []
    for member in index.members:
        folder = folder_of(member.name)
        span = beside.get(folder)
        used.add(folder)
        members.append(member if member.sidecar else replace(member, sidecar=span))
    orphans = [
        Problem(span.name, RejectReason.SIDECAR_ORPHAN, "no screenshot beside these messages")
        for folder, span in beside.items()
        if folder not in used
    ]
    return replace(index, members=tuple(members), problems=(*index.problems, *orphans))


def _orphaned(index: ShardIndex, tables: Sequence[ByteRange]) -> ShardIndex:
    orphans = [
        Problem(table.name, RejectReason.SIDECAR_ORPHAN, "no image in this folder")
        for table in tables
    ]
    return replace(index, problems=(*index.problems, *orphans))


def _tables_above(shard: Shard, storage: Storage) -> list[ByteRange]:
    """Metadata tables directly beside the folder."""
    parent = parent_uri(shard.uri)
    if parent in {"/", "s3://", "//"}:
        return []
    try:
        names = [uri for uri in storage.children(parent) if is_metadata(uri)]
        stats = [storage.stat(uri) for uri in names]
    except StorageError:  # not ours to read: the folder alone is the input
        return []
    return [ByteRange(ABOVE + base_name(stat.uri), None, stat.size) for stat in stats]


@dataclass(slots=True)
class _Place:
    span: ByteRange
    row: int | None
    flags: tuple[str, ...]


class _Joined:
    """Images, and the rows found for them until now."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._exact = {member.name: i for i, member in enumerate(members)}
        self._composed = {_nfc(member.name): i for i, member in enumerate(members)}
        self._places: dict[int, _Place] = {}
        self.problems: list[Problem] = []

    def take(self, table: str, records: Records) -> None:
        """Note which image each row of a table in the folder is about."""
        taken: set[int] = set()
        for record in records:
            if isinstance(record, BadRecord):
                self._bad(table, record)
            elif not self._note(record, record.image, taken):
                self._orphan(table, record)

    def take_above(self, shard: Shard, table: ByteRange, records: Records) -> None:
        """The same for a table beside the folder, if it is about this folder at all."""
        prefix, taken = base_name(shard.uri.rstrip("/")) + "/", set[int]()
        lost: list[Record] = []
        for record in records:
            if isinstance(record, BadRecord):
                continue
            inside = record.image.removeprefix(prefix)
            placed = replace(record, place=replace(record.place, name=table.name))
            if self._note(placed, inside, taken):
                continue
            if record.image.startswith(prefix) or "/" not in record.image:
                lost.append(record)
        if taken:
            for record in lost:
                self._orphan(table.name, record)

    def members(self, tables: Sequence[ByteRange]) -> tuple[Member, ...]:
        """The images with their rows; those under a table that names them nowhere are flagged."""
        above = [folder_of(table.name) for table in tables]
        return tuple(self._with_row(i, member, above) for i, member in enumerate(self._members))

    def _with_row(self, number: int, member: Member, above: Sequence[str]) -> Member:
        place = self._places.get(number)
        if place is None:
            if member.sidecar is None and any(member.name.startswith(folder) for folder in above):
                return replace(member, flags=tuple(sorted({*member.flags, NO_ROW})))
            return member
        if member.sidecar is not None:
            return member
        flags = tuple(sorted({*member.flags, *place.flags}))
        return replace(member, sidecar=place.span, sidecar_row=place.row, flags=flags)

    def _note(self, record: Record, image: str, taken: set[int]) -> bool:
        """Whether there is such an image; names are compared as they are, then in NFC."""
        number = self._exact.get(image, self._composed.get(_nfc(image)))
        if number is None:
            return False
        if number in taken:
            detail = (
                f"row {record.number} is a second one about {image}; the first is used. "
                "Several questions about a screen go into `input.queries`"
            )
            self.problems.append(Problem(record.place.name, RejectReason.SIDECAR_INVALID, detail))
        taken.add(number)
        self._places.setdefault(number, _Place(record.place, record.row, record.flags))
        return True

    def _orphan(self, table: str, record: Record) -> None:
        detail = f"row {record.number}: no image {record.image}"
        self.problems.append(Problem(table, RejectReason.SIDECAR_ORPHAN, detail))

    def _bad(self, table: str, record: BadRecord) -> None:
        where = "" if record.number is None else f"row {record.number}: "
        self.problems.append(Problem(table, RejectReason.SIDECAR_INVALID, where + record.detail))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
