"""Parquet files with a column of images, read in bounded memory whatever the row groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pyarrow as pa

from schemas.codes import RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.records import ByteRange, Member, Problem, Reject, Shard, Unit
from transforms.shards.base import RawScreen, ShardIndex, Source
from transforms.shards.held import BENCH
from transforms.shards.parquet_columns import image_bytes, sidecar_bytes
from transforms.shards.parquet_rows import PARQUET_ERRORS, ParquetRows, Row
from transforms.storage import Storage


def row_name(row: int, element: int | None = None) -> str:
    """The member name of a row: `row-00000012`; of an image in its list: `row-00000012-0`."""
    return f"row-{row:08d}" if element is None else f"row-{row:08d}-{element}"


def index_parquet(shard: Shard, storage: Storage) -> ShardIndex:
    """A member for each image, from the footer alone; sizes are unknown and given as 0.

    Where a row holds a list, each of its images is a member; how many there are is read from the
    column. A row with no image in its list is a problem.
    """
    if shard.byte_size == 0:
        return ShardIndex((), (Problem(None, RejectReason.SHARD_EMPTY, "0 bytes"),))
    try:
        rows = ParquetRows(shard, storage)
    except MemberRejected as error:
        return ShardIndex((), (Problem(None, error.reason, error.detail),))
    try:
        if rows.columns.lists:
            return _index_lists(rows)
        return ShardIndex(tuple(_member(row, None) for row in range(rows.count)))
    finally:
        rows.close()


def read_parquet(unit: Unit, source: Source) -> Iterator[RawScreen | Reject]:
    """One item for each member of the unit, in order.

    Rows before the unit in its first row group are decoded and dropped, unless the unit before was
    read by this process: then reading goes on from there.
    """
    with _lend(source, unit.members[0].row or 0) as rows:
        row: Row | None = None
        for member in unit.members:
            try:
                if row is None or row.number != member.row:
                    row = rows.read(member.row or 0)
                yield _screen(member, row, source)
            except MemberRejected as error:
                yield Reject(Stage.READ, error.reason, error.detail, member.name)


def read_parquet_member(source: Source, member: Member) -> bytes:
    """The bytes of one image.

    Raises:
        MemberRejected: if the row is not there or holds no image.
    """
    with _lend(source, member.row or 0) as rows:
        return _image(member, rows.read(member.row or 0), source)


def _lend(source: Source, row: int) -> AbstractContextManager[ParquetRows]:
    key = f"parquet\n{source.state}"
    return BENCH.lend(key, row, lambda: ParquetRows(source.shard, source.storage))


def _member(row: int, element: int | None) -> Member:
    name = row_name(row, element)
    return Member(name, ByteRange(name, None, 0), row=row)


def _index_lists(rows: ParquetRows) -> ShardIndex:
    members: list[Member] = []
    problems: list[Problem] = []
    try:
        for row, length in enumerate(rows.lengths()):
            members += [_member(row, element) for element in range(length)]
            if not length:
                detail = "the row's list of images is empty"
                problems.append(Problem(row_name(row), RejectReason.MEMBER_UNREADABLE, detail))
    except PARQUET_ERRORS as error:
        detail = f"the lists of images cannot be counted: {error}"
        return ShardIndex((), (Problem(None, RejectReason.SHARD_UNREADABLE, detail),))
    return ShardIndex(tuple(members), tuple(problems)).read_through()


def _screen(member: Member, row: Row, source: Source) -> RawScreen:
    return RawScreen(member, _image(member, row, source), sidecar_bytes(row.sidecar))


def _image(member: Member, row: Row, source: Source) -> bytes:
    value: pa.Scalar = row.image
    if member.name != row_name(row.number):
        element = int(member.name.rpartition("-")[2])
        if value.values is None or element >= len(value.values):
            detail = f"{member.name}: the row's list of images is shorter now"
            raise MemberRejected(RejectReason.SHARD_CHANGED, detail)
        value = value.values[element]
    return image_bytes(value, source.shard.uri, source.storage)
