"""A unit becomes real: its parts are written and verified, then one small record says so."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.commits import (
    CommitRecord,
    PartRef,
    UnitCounts,
    WorkerStats,
    commit_from_json,
    commit_to_json,
    read_head,
)
from schemas.errors import DatasetError, StorageError
from schemas.ids import sha256_hex
from schemas.records import Unit
from schemas.tables import SCHEMA_VERSION
from transforms.storage import join_uri, storage_for

HEAD = "_dataset.json"
"""Name of the head file: the fingerprint of the dataset and what it is made of."""

COMMITS = "_commits"
"""Folder of the commit records; the underscore hides it from tools that read folders of Parquet."""

RUN = "_run"
"""Folder for what runs say of themselves while they work and of their parts; never data."""


@dataclass(frozen=True, slots=True)
class DatasetWriter:
    """Writes units into one dataset. Safe to call again for a unit that was half written.

    Part names depend on the unit and the fingerprint alone, so a killed attempt is overwritten by
    the next one; a part counts only once the unit's record names it.

    Attributes:
        uri: local folder or `s3://bucket/prefix`.
        fingerprint: hash of everything that shapes rows.
    """

    uri: str
    fingerprint: str
    s3_endpoint: str | None = None

    def find(self, unit_id: str) -> CommitRecord | None:
        """The commit record of a unit, or None when it is not committed."""
        storage = storage_for(self.uri, self.s3_endpoint)
        record_uri = self._record_uri(unit_id)
        if not storage.exists(record_uri):
            return None
        return commit_from_json(storage.read(record_uri), record_uri)

    def commit(
        self,
        unit: Unit,
        tables: Mapping[str, pa.Table],
        counts: UnitCounts,
        worker: WorkerStats,
    ) -> CommitRecord:
        """Write the parts, verify them, then the record; returns the record that now stands.

        When another job committed the unit first, its record stands and ours is dropped: parts of
        the same name hold the same unit under the same fingerprint.

        Raises:
            StorageError: if a part cannot be written or does not read back as written.
            DatasetError: if the dataset is not, or no longer, one of our fingerprint.
        """
        self._check_claim()
        parts = tuple(self._write_part(unit, name, table) for name, table in tables.items())
        record = CommitRecord(
            unit_id=unit.unit_id,
            unit_index=unit.index,
            shard=unit.shard.uri,
            fingerprint=self.fingerprint,
            schema_version=SCHEMA_VERSION,
            parts=parts,
            counts=counts,
            worker=worker,
        )
        storage = storage_for(self.uri, self.s3_endpoint)
        if storage.create(self._record_uri(unit.unit_id), commit_to_json(record)):
            return record
        return self.find(unit.unit_id) or record

    def _check_claim(self) -> None:
        """Another job may have claimed the dataset while it was still empty."""
        storage = storage_for(self.uri, self.s3_endpoint)
        head_uri = join_uri(self.uri, HEAD)
        found = read_head(storage.read(head_uri), head_uri)
        if found.fingerprint != self.fingerprint:
            raise DatasetError(
                f"{self.uri}: another job, with other settings, has taken this dataset over"
            )

    def _record_uri(self, unit_id: str) -> str:
        return join_uri(self.uri, COMMITS, f"{unit_id}.json")

    def _write_part(self, unit: Unit, name: str, table: pa.Table) -> PartRef:
        path = f"{name}/{unit.unit_id}-{self.fingerprint[:8]}.parquet"
        data = _parquet_bytes(table)
        storage = storage_for(self.uri, self.s3_endpoint)
        target = join_uri(self.uri, *path.split("/"))
        storage.write_atomic(target, data)
        _verify(data, table, target, storage.stat(target).size)
        return PartRef(name, path, table.num_rows, len(data), sha256_hex(data))


def _parquet_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def _verify(data: bytes, table: pa.Table, target: str, stored: int) -> None:
    """Check the footer against the table, and the stored size against the bytes."""
    footer = pq.read_metadata(io.BytesIO(data))
    if footer.num_rows != table.num_rows:
        raise StorageError(f"{target}: footer says {footer.num_rows} rows, not {table.num_rows}")
    if stored != len(data):
        raise StorageError(f"{target}: {stored} bytes are stored, {len(data)} were written")
