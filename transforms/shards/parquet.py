"""Parquet files with a column of images, read row group by row group in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Member, Problem, Reject, Shard, Unit
from transforms.shards.base import RawScreen, ShardIndex
from transforms.shards.parquet_columns import Columns, find_columns, image_bytes, sidecar_bytes
from transforms.storage import Storage
from transforms.storage.base import HEADER_READ_AHEAD

_BATCH_ROWS = 8
_BUFFER = 2**20
_ERRORS = (pa.ArrowException, OSError, MemoryError)


@dataclass(frozen=True, slots=True)
class _Row:
    """One row as it is in the file: Arrow scalars, not yet checked."""

    number: int
    image: pa.Scalar
    sidecar: pa.Scalar | None


def row_name(row: int) -> str:
    """The member name of a row: `row-00000012`."""
    return f"row-{row:08d}"


def index_parquet(shard: Shard, storage: Storage) -> ShardIndex:
    """A member for each row, from the footer alone; sizes are unknown and given as 0."""
    if shard.byte_size == 0:
        return ShardIndex((), (Problem(None, RejectReason.SHARD_EMPTY, "0 bytes"),))
    try:
        with _open(shard, storage) as file:
            find_columns(file.schema_arrow)
            rows = file.metadata.num_rows
    except MemberRejected as error:
        return ShardIndex((), (Problem(None, RejectReason(error.reason), error.detail),))
    names = map(row_name, range(rows))
    return ShardIndex(
        tuple(Member(name, ByteRange(name, None, 0), row=i) for i, name in enumerate(names))
    )


def read_parquet(unit: Unit, storage: Storage) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order.

    Rows before the unit in its first row group are decoded and dropped: write small row groups.
    """
    with _open(unit.shard, storage) as file:
        columns = find_columns(file.schema_arrow)
        for group, members in _by_group(file, unit.members):
            done = 0
            try:
                wanted = [member.row or 0 for member in members]
                for row in _rows(file, columns, group, wanted):
                    yield _screen(unit.shard, members[done], row, storage)
                    done += 1
            except _ERRORS as error:
                for member in members[done:]:
                    detail = f"row group {group}: {error}"
                    yield Reject(Stage.READ, RejectReason.MEMBER_UNREADABLE, detail, member.name)


def read_parquet_member(shard: Shard, member: Member, storage: Storage) -> bytes:
    """The image bytes of one row.

    Raises:
        MemberRejected: if the row is not there or holds no image.
    """
    with _open(shard, storage) as file:
        columns = find_columns(file.schema_arrow)
        for group, members in _by_group(file, (member,)):
            for row in _rows(file, columns, group, [members[0].row or 0]):
                return image_bytes(row.image, shard.uri, storage)
    raise MemberRejected(RejectReason.SHARD_CHANGED, f"{member.name}: the file has fewer rows")


@contextmanager
def _open(shard: Shard, storage: Storage) -> Iterator[pq.ParquetFile]:
    """The file with its footer read.

    Raises:
        MemberRejected: SHARD_UNREADABLE if there is no whole footer.
    """
    with storage.open(shard.uri, shard.version, HEADER_READ_AHEAD) as raw:
        try:
            file = pq.ParquetFile(raw, buffer_size=_BUFFER, pre_buffer=False)
        except _ERRORS as error:
            detail = f"not a readable Parquet file: {error}"
            raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail) from error
        with file:
            yield file


def _by_group(
    file: pq.ParquetFile, members: tuple[Member, ...]
) -> Iterator[tuple[int, tuple[Member, ...]]]:
    first = 0
    for group in range(file.num_row_groups):
        after = first + file.metadata.row_group(group).num_rows
        inside = tuple(m for m in members if m.row is not None and first <= m.row < after)
        if inside:
            yield group, inside
        first = after


def _rows(file: pq.ParquetFile, columns: Columns, group: int, wanted: list[int]) -> Iterator[_Row]:
    """The wanted rows of one row group, ascending, `_BATCH_ROWS` in memory at a time."""
    number = sum(file.metadata.row_group(i).num_rows for i in range(group))
    names = [name for name in (columns.image, columns.sidecar) if name]
    last = max(wanted)
    rows = set(wanted)
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names):
        for i in range(batch.num_rows):
            if number + i in rows:
                sidecar = batch[columns.sidecar][i] if columns.sidecar else None
                yield _Row(number + i, batch[columns.image][i], sidecar)
        number += batch.num_rows
        if number > last:
            return


def _screen(shard: Shard, member: Member, row: _Row, storage: Storage) -> RawScreen | Reject:
    try:
        data = image_bytes(row.image, shard.uri, storage)
        return RawScreen(member, data, sidecar_bytes(row.sidecar))
    except MemberRejected as error:
        return Reject(Stage.READ, RejectReason(error.reason), error.detail, member.name)
