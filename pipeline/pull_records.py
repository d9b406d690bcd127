"""Where reviews lie in a dataset: append-only parts, a record for each, and how far was read.

A part is named by its content and counts once its record exists, so a pull that is killed in
between and started again writes the same part again, and nothing twice. The state is only a
shortcut: without it everything on the server is read anew, and what is known is recognised.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.dataset_parts import check_version, read_part, table_schema
from schemas.commits import PartRef
from schemas.errors import DatasetError, StorageError
from schemas.ids import content_id, sha256_hex
from schemas.tables import SCHEMA_VERSION
from transforms.storage import ObjectMissingError, Storage, join_uri

REVIEWS_STATE = "_reviews"
"""Folder of the records and the state; the underscore hides it from readers of Parquet folders."""

_TABLE = "reviews"
_RECORD, _STATE = "pull-", "state-"
_NAME_DIGITS = 24


class ReviewRecord(BaseModel):
    """The proof that one part of `reviews` exists.

    Attributes:
        server: address of the Label Studio server it was pulled from.
        pulled_at: UTC.
    """

    model_config = ConfigDict(frozen=True)

    part: PartRef
    server: str
    project_id: int
    schema_version: str
    pulled_at: datetime


class PullState(BaseModel):
    """How far one project was read.

    Attributes:
        watermark: the newest `updated_at` of the project's tasks, by the server's clock, when the
            last pull began; None when it had no tasks.
        units: hash of the units the dataset had: reviews of samples that came later were passed
            over, so another value means that all has to be read again.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    project_id: int
    watermark: datetime | None
    units: str


def review_records(storage: Storage, dataset: str) -> list[ReviewRecord]:
    """The records of a dataset's reviews, in the order they were pulled.

    Raises:
        DatasetError: if one is not a record, or was written under another schema.
    """
    records = [
        _record(storage, stat.uri)
        for stat in storage.list(join_uri(dataset, REVIEWS_STATE))
        if _name(stat.uri).startswith(_RECORD)
    ]
    return sorted(records, key=lambda record: (record.pulled_at, record.part.path))


def review_parts(
    storage: Storage, dataset: str, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The committed parts of `reviews`, one at a time.

    Raises:
        DatasetError: if a part is missing or was written under another schema.
    """
    schema = table_schema(_TABLE, columns)
    for record in review_records(storage, dataset):
        uri = join_uri(dataset, *record.part.path.split("/"))
        yield read_part(storage, uri, record.part.rows, schema)


def commit_reviews(
    storage: Storage, dataset: str, table: pa.Table, server: str, project_id: int, now: datetime
) -> ReviewRecord:
    """Write one part and then its record.

    Raises:
        StorageError: if either cannot be written, or the part does not read back as written.
    """
    data = _parquet(table)
    digest = sha256_hex(data)
    name = content_id([table["review_id"].to_pylist(), digest], length=_NAME_DIGITS)
    path = f"{_TABLE}/{name}.parquet"
    target = join_uri(dataset, _TABLE, f"{name}.parquet")
    storage.write_atomic(target, data)
    if storage.stat(target).size != len(data):
        raise StorageError(f"{target}: does not have the {len(data)} bytes that were written")
    record = ReviewRecord(
        part=PartRef(_TABLE, path, table.num_rows, len(data), digest),
        server=server,
        project_id=project_id,
        schema_version=SCHEMA_VERSION,
        pulled_at=now,
    )
    uri = join_uri(dataset, REVIEWS_STATE, f"{_RECORD}{name}.json")
    storage.write_atomic(uri, record.model_dump_json(indent=1).encode())
    return record


def remove_leftovers(storage: Storage, dataset: str) -> int:
    """Remove parts that a killed pull left without a record; call only under the lock.

    A plain glob over the folder would read them as well.
    """
    named = {record.part.path for record in review_records(storage, dataset)}
    left = [
        stat.uri
        for stat in storage.list(join_uri(dataset, _TABLE))
        if f"{_TABLE}/{_name(stat.uri)}" not in named
    ]
    for uri in left:
        storage.delete(uri)
    return len(left)


def read_state(storage: Storage, dataset: str, server: str, project_id: int) -> PullState | None:
    """How far this project was read, or None: never, or the file is not readable."""
    try:
        data = storage.read(_state_uri(dataset, server, project_id))
        return PullState.model_validate_json(data)
    except (ObjectMissingError, ValidationError):
        return None


def write_state(storage: Storage, dataset: str, state: PullState) -> None:
    """Remember how far a project was read."""
    uri = _state_uri(dataset, state.server, state.project_id)
    storage.write_atomic(uri, state.model_dump_json(indent=1).encode())


def _state_uri(dataset: str, server: str, project_id: int) -> str:
    name = content_id([server, project_id], length=_NAME_DIGITS)
    return join_uri(dataset, REVIEWS_STATE, f"{_STATE}{name}.json")


def _record(storage: Storage, uri: str) -> ReviewRecord:
    try:
        record = ReviewRecord.model_validate_json(storage.read(uri))
    except ValidationError as error:
        raise DatasetError(f"{uri}: not a record of pulled reviews: {error}") from error
    check_version(uri, record.schema_version)
    return record


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()
