"""One part of a unit: it is there, it is what was committed, and it has the frozen schema."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.dataset_parts import check_version
from pipeline.verify.findings import Verdict
from schemas.commits import PartRef
from schemas.errors import DatasetError, StorageError
from schemas.ids import sha256_hex
from schemas.tables import SCHEMA_VERSION, TABLES
from transforms.storage import Storage, join_uri


def checked_part(storage: Storage, root: str, part: PartRef, verdict: Verdict) -> pa.Table | None:
    """The rows of a part; None where they cannot be read or have no schema that fits."""
    uri = join_uri(root, *part.path.split("/"))
    try:
        data = storage.read(uri)
    except StorageError as error:
        verdict.add("part", uri, str(error))
        return None
    verdict.parts += 1
    verdict.part_bytes += len(data)
    if len(data) != part.byte_size:
        verdict.add("part", uri, f"{len(data)} bytes, {part.byte_size} were committed")
    elif sha256_hex(data) != part.sha256:
        verdict.add("part", uri, "its SHA-256 is not the one that was committed")
    table = read_table(data, uri, part.table, verdict)
    if table is not None and table.num_rows != part.rows:
        verdict.add("part", uri, f"{table.num_rows} rows, {part.rows} were committed")
    return table


def read_table(data: bytes, uri: str, name: str, verdict: Verdict) -> pa.Table | None:
    """The rows of a Parquet file; None where it cannot be read or has no schema that fits.

    Args:
        data: the file.
        uri: where it is, for the findings.
        name: the table that it is of.
        verdict: is added to.
    """
    try:
        file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        table = file.read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        verdict.add("part", uri, f"cannot be read: {error}")
        return None
    return table if _schema_fits(table.schema, uri, name, verdict) else None


def _schema_fits(schema: pa.Schema, uri: str, name: str, verdict: Verdict) -> bool:
    """Whether a part has the frozen schema, or an older minor version of it."""
    frozen = TABLES.get(name)
    metadata = schema.metadata or {}
    version = metadata.get(b"pantalla.schema_version", b"").decode(errors="replace")
    problem = ""
    if frozen is None or metadata.get(b"pantalla.table") != name.encode():
        problem = f"says it is table {metadata.get(b'pantalla.table')!r}, not {name}"
    elif not version:
        problem = "carries no schema version"
    else:
        try:
            check_version(uri, version)
        except DatasetError as error:
            problem = str(error)
    if not problem and frozen is not None:
        problem = _fields(schema, frozen, exact=version == SCHEMA_VERSION)
    if problem:
        verdict.add("schema", uri, problem)
    return not problem


def _fields(schema: pa.Schema, frozen: pa.Schema, *, exact: bool) -> str:
    """What is wrong with the fields, or nothing; later minor versions only added nullable ones."""
    unknown = sorted(set(schema.names) - set(frozen.names))
    if unknown:
        return f"has fields that schema {SCHEMA_VERSION} does not know: {', '.join(unknown)}"
    for field in frozen:
        index = schema.get_field_index(field.name)
        if index < 0:
            if exact or not field.nullable:
                return f"has no field {field.name}"
            continue
        found = schema.field(index)
        grown = pa.types.is_struct(field.type) and not exact
        if not grown and not (found.type.equals(field.type) and found.nullable == field.nullable):
            return f"field {field.name} is {found.type}, frozen is {field.type}"
    return ""
