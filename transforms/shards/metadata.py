"""Tables about the images of a folder, as Hugging Face's `imagefolder` has them.

`metadata*.jsonl|csv|parquet` has a column `file_name`, relative to the table's own folder, and in
its other columns what a sidecar would say. A record is found again by its bytes, or in Parquet by
its row, so that nothing but the place of it is kept.
"""

from __future__ import annotations

import csv
import io
import posixpath
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.records import ByteRange
from transforms.shards.names import folder_of, suffix
from transforms.source_text import decode_text, load_json
from transforms.storage import Storage

FILE_NAME = "file_name"
"""The column that names the image."""

_PARQUET_ERRORS = (pa.ArrowException, OSError)
_MAX_FIELD = 2**27


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a table.

    Attributes:
        number: from 1, as a person counts.
        image: the name it gives, relative to the shard.
        place: where its bytes are; of a Parquet file all of it.
        row: in a Parquet file, from 0.
        flags: the encoding of its text, where that is not UTF-8.
    """

    number: int
    image: str
    place: ByteRange
    row: int | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A row, or a whole table where `number` is None, that says nothing of any image."""

    number: int | None
    detail: str


Records: TypeAlias = "Iterator[Record | BadRecord]"


def read_records(name: str, uri: str, size: int, storage: Storage) -> Records:
    """The rows of a table, in order, streamed.

    Args:
        name: of the table, relative to the shard.
        uri: where it is.
        size: its size in bytes.
        storage: that holds it.

    Raises:
        StorageError: if it cannot be read.
    """
    with closing(storage.open(uri)) as file:
        if suffix(name) == ".parquet":
            yield from _parquet_records(name, size, file)
        elif suffix(name) == ".csv":
            yield from _csv_records(name, file)
        else:
            yield from _json_records(name, file)


def csv_header(file: BinaryIO) -> list[str]:
    """The column names of a CSV file that is open at its start."""
    text, _ = decode_text(file.readline())
    return next(csv.reader([text]), [])


def csv_fields(header: list[str], record: bytes) -> dict[str, str]:
    """The cells of one record by column; cells beyond the header are left out."""
    text, _ = decode_text(record)
    cells = next(csv.reader(io.StringIO(text, newline="")), [])
    return dict(zip(header, cells, strict=False))


def _json_records(name: str, file: BinaryIO) -> Records:
    offset = 0
    for number, line in enumerate(file, start=1):
        place = ByteRange(name, offset, len(line))
        offset += len(line)
        if not line.strip():
            continue
        text, flags = decode_text(line)
        try:
            fields = load_json(text)
        except ValueError as error:
            yield BadRecord(number, str(error))
            continue
        image = fields.get(FILE_NAME) if isinstance(fields, dict) else None
        yield _record(name, number, image, place, flags=flags)


def _csv_records(name: str, file: BinaryIO) -> Records:
    header = csv_header(file)
    if FILE_NAME not in header:
        yield _no_column(header)
        return
    csv.field_size_limit(_MAX_FIELD)
    column, offset = header.index(FILE_NAME), file.tell()
    lines = _Lines(file)
    try:
        for number, cells in enumerate(csv.reader(lines, strict=False), start=1):
            size, flags = lines.taken()
            place = ByteRange(name, offset, size)
            offset += size
            if any(cells[len(header) :]):
                detail = f"{len(cells)} cells under {len(header)} names; quote text with a comma"
                yield BadRecord(number, detail)
            elif cells:
                image = cells[column] if column < len(cells) else None
                yield _record(name, number, image, place, flags=flags)
    except csv.Error as error:
        yield BadRecord(None, f"not readable as CSV: {error}")


class _Lines:
    """Lines of text for `csv`, which takes several for a record; counts their bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._bytes = 0
        self._flags: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            text, flags = decode_text(line)
            self._bytes += len(line)
            self._flags |= set(flags)
            yield text

    def taken(self) -> tuple[int, tuple[str, ...]]:
        """Bytes and encoding flags since the last call."""
        taken = self._bytes, tuple(sorted(self._flags))
        self._bytes, self._flags = 0, set()
        return taken


def _parquet_records(name: str, size: int, file: BinaryIO) -> Records:
    try:
        with pq.ParquetFile(file) as table:
            if FILE_NAME not in table.schema_arrow.names:
                yield _no_column(table.schema_arrow.names)
                return
            place, row = ByteRange(name, None, size), 0
            for batch in table.iter_batches(columns=[FILE_NAME]):
                for image in batch.column(0).to_pylist():
                    yield _record(name, row + 1, image, place, row=row)
                    row += 1
    except (*_PARQUET_ERRORS, UnicodeDecodeError) as error:
        yield BadRecord(None, f"not a readable Parquet file: {error}")


def _record(
    table: str,
    number: int,
    image: object,
    place: ByteRange,
    row: int | None = None,
    flags: tuple[str, ...] = (),
) -> Record | BadRecord:
    if not isinstance(image, str) or not image:
        return BadRecord(number, f"no `{FILE_NAME}`")
    given = image if "/" in image else image.replace("\\", "/")
    path = posixpath.normpath(folder_of(table) + given)
    return Record(number, path, place, row, flags)


def _no_column(names: list[str]) -> BadRecord:
    return BadRecord(None, f"no column `{FILE_NAME}`; there are: {', '.join(names)}")
