"""Reads one committed Parquet part into the schema of its table."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import DatasetError, StorageError
from schemas.tables import SCHEMA_VERSION, TABLES
from transforms.storage import Storage


def table_schema(name: str, columns: Sequence[str] | None = None) -> pa.Schema:
    """The frozen schema of a table, or of some of its columns.

    Raises:
        DatasetError: naming a table or a column that does not exist.
    """
    if name not in TABLES:
        raise DatasetError(f"no table `{name}`; there are: {', '.join(TABLES)}")
    schema = TABLES[name]
    if columns is None:
        return schema
    unknown = [column for column in columns if column not in schema.names]
    if unknown:
        raise DatasetError(f"table `{name}` has no column {', '.join(unknown)}")
    return pa.schema([schema.field(column) for column in columns], metadata=schema.metadata)


def read_part(storage: Storage, uri: str, rows: int, schema: pa.Schema) -> pa.Table:
    """The columns of `schema` from one part.

    Args:
        storage: where the dataset lies.
        uri: address of the part.
        rows: what its commit record says; the part must have as many.
        schema: the columns wanted, from `table_schema`.

    Raises:
        DatasetError: if the part is missing, damaged, or of another schema version.
    """
    try:
        data = storage.read(uri)
    except StorageError as error:
        raise DatasetError(f"{uri}: a committed part is missing or unreadable: {error}") from error
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        _check_metadata(uri, file.schema_arrow)
        if file.metadata.num_rows != rows:
            raise DatasetError(f"{uri}: has {file.metadata.num_rows} rows, committed were {rows}")
        names = [name for name in schema.names if name in file.schema_arrow.names]
        return _conform(file.read(columns=names), schema, uri)
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError(f"{uri}: a committed part is damaged: {error}") from error


def check_version(uri: str, version: str) -> None:
    """Refuse what was written under another major version of the schema.

    Raises:
        DatasetError: naming both versions and what to do.
    """
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise DatasetError(
            f"{uri}: written under schema {version}, this Pantalla reads {SCHEMA_VERSION}; "
            "use the Pantalla that wrote it, or run the job into a new dataset"
        )


def _check_metadata(uri: str, schema: pa.Schema) -> None:
    found = (schema.metadata or {}).get(b"pantalla.schema_version")
    if found is None:
        raise DatasetError(f"{uri}: carries no schema version: it is not a Pantalla part")
    check_version(uri, found.decode())


def _conform(table: pa.Table, schema: pa.Schema, uri: str) -> pa.Table:
    """`table` under `schema`; fields an older minor version lacks become null."""
    columns = []
    for wanted in schema:
        if wanted.name in table.column_names:
            columns.append(table[wanted.name])
        elif wanted.nullable:
            columns.append(pa.nulls(table.num_rows, wanted.type))
        else:
            raise DatasetError(f"{uri}: has no column `{wanted.name}`: another schema version")
    try:
        return pa.table(columns, names=schema.names).cast(schema)
    except (pa.ArrowInvalid, ValueError) as error:
        raise DatasetError(f"{uri}: does not fit schema {SCHEMA_VERSION}: {error}") from error
