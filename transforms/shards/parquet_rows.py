"""The rows of a Parquet file, forward and a few at a time, and how long their lists are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.records import Shard
from transforms.shards.parquet_columns import Columns, find_columns
from transforms.storage import Storage
from transforms.storage.base import HEADER_READ_AHEAD

PARQUET_ERRORS = (pa.ArrowException, OSError, MemoryError)
"""What reading a damaged file raises."""

_BATCH_ROWS = 8
_LENGTH_ROWS = 4096
_BUFFER = 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it is in the file: Arrow scalars, not yet checked."""

    number: int
    image: pa.Scalar
    sidecar: pa.Scalar | None


class ParquetRows:
    """An open file that stands at a row, and can go on from there or jump to a row group.

    Memory holds `_BATCH_ROWS` rows, however large the row group: pages are read through a small
    buffer, one after the other.

    Attributes:
        columns: what is read of it.
    """

    def __init__(self, shard: Shard, storage: Storage) -> None:
        """Read the footer.

        Raises:
            MemberRejected: SHARD_UNREADABLE if there is no whole footer, or no column of images.
        """
        self._raw: BinaryIO = storage.open(shard.uri, shard.version, HEADER_READ_AHEAD)
        try:
            self._file = pq.ParquetFile(self._raw, buffer_size=_BUFFER, pre_buffer=False)
            self.columns: Columns = find_columns(self._file.schema_arrow)
        except PARQUET_ERRORS as error:
            self._raw.close()
            detail = f"not a readable Parquet file: {error}"
            raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail) from error
        except MemberRejected:
            self._raw.close()
            raise
        self._starts = [0]
        for group in range(self._file.num_row_groups):
            rows = self._file.metadata.row_group(group).num_rows
            self._starts.append(self._starts[-1] + rows)
        self._rows: Iterator[Row] = iter(())
        self._next, self._group = 0, -1
        self._broken: dict[int, tuple[int, str]] = {}

    @property
    def count(self) -> int:
        """Rows in the file."""
        return self._starts[-1]

    def tell(self) -> int:
        """The row that comes next."""
        return self._next

    def close(self) -> None:
        """Close the file."""
        self._rows = iter(())
        self._file.close()
        self._raw.close()

    def group_of(self, row: int) -> int:
        """The row group that holds a row; -1 if the file has fewer rows."""
        groups = range(len(self._starts) - 1)
        return next((g for g in groups if self._starts[g] <= row < self._starts[g + 1]), -1)

    def read(self, row: int) -> Row:
        """A row; going on is cheap, going back is decoding its row group from the start.

        Raises:
            MemberRejected: SHARD_CHANGED if the file has fewer rows, MEMBER_UNREADABLE if it is
                damaged there.
        """
        group = self.group_of(row)
        if group < 0:
            detail = f"row {row}: the file has only {self.count}"
            raise MemberRejected(RejectReason.SHARD_CHANGED, detail)
        first_lost, why = self._broken.get(group, (row + 1, ""))
        if row >= first_lost:
            raise MemberRejected(RejectReason.MEMBER_UNREADABLE, why)
        if group != self._group or row < self._next:
            self._group, self._next = group, self._starts[group]
            self._rows = self._decode(group)
        try:
            found = next(r for r in self._rows if r.number == row)
        except (*PARQUET_ERRORS, StopIteration) as error:
            detail = f"row group {group}: {error}"
            self._group, self._broken[group] = -1, (row, detail)
            raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail) from error
        self._next = row + 1
        return found

    def lengths(self) -> Iterator[int]:
        """How many images each row has, where a row holds a list; 0 for none.

        Of `struct<bytes, path>` the paths say it; of plain binaries the images themselves must be
        gone through, a few at a time.
        """
        leaf = self._path_leaf()
        names, rows = ([leaf], _LENGTH_ROWS) if leaf else ([self.columns.image], _BATCH_ROWS)
        for batch in self._file.iter_batches(rows, columns=names):
            lengths = pc.fill_null(pc.list_value_length(batch.column(0)), 0)
            yield from lengths.to_pylist()

    def _path_leaf(self) -> str | None:
        schema = self._file.schema
        paths = [schema.column(i).path for i in range(len(schema))]
        inside = [p for p in paths if p.startswith(f"{self.columns.image}.")]
        return next((path for path in inside if path.endswith(".path")), None)

    def _decode(self, group: int) -> Iterator[Row]:
        number = self._starts[group]
        columns = self.columns
        names = [name for name in (columns.image, columns.sidecar) if name]
        for batch in self._file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names):
            for i in range(batch.num_rows):
                sidecar = batch[columns.sidecar][i] if columns.sidecar else None
                yield Row(number + i, batch[columns.image][i], sidecar)
            number += batch.num_rows
