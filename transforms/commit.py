"""A unit becomes real: its parts are written and verified, then one small record says so.

Exactly once, also when two jobs do the same unit at the same time, and also on a store that
ignores conditional writes: a part's name holds the hash of its content, so no job overwrites what
another one wrote, and a record names parts of one attempt only. Whichever record stands in the end
is whole. What the other attempt left is never read.
"""

from __future__ import annotations

import io
import logging
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
from transforms.storage import Storage, join_uri, storage_for

log = logging.getLogger(__name__)

HEAD = "_dataset.json"
"""Name of the head file: the fingerprint of the dataset and what it is made of."""

COMMITS = "_commits"
"""Folder of the commit records; the underscore hides it from tools that read folders of Parquet."""

RUN = "_run"
"""Folder for what runs say of themselves while they work and of their parts; never data."""

_WRITES = 3
"""Times a part is written before a store that does not give back what it took is given up."""


@dataclass(frozen=True, slots=True)
class DatasetWriter:
    """Writes units into one dataset. Safe to call again for a unit that was half written.

    A part counts only once the unit's record names it.

    Attributes:
        uri: local folder or `s3://bucket/prefix`.
        fingerprint: hash of everything that shapes rows.
    """

    uri: str
    fingerprint: str
    s3_endpoint: str | None = None

    @property
    def storage(self) -> Storage:
        """What holds the dataset."""
        return storage_for(self.uri, self.s3_endpoint)

    def find(self, unit_id: str) -> CommitRecord | None:
        """The commit record of a unit, or None when it is not committed."""
        storage = self.storage
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

        When another job commits the same unit at the same time, one record stands and the parts of
        the other attempt are leftovers.

        Raises:
            StorageError: if a part cannot be written or does not read back as written.
            DatasetError: if the dataset is not, or no longer, one of our fingerprint.
        """
        self._check_claim()
        try:
            parts = tuple(self._write_part(unit, name, table) for name, table in tables.items())
        except StorageError:
            # Another job may have committed this unit, and swept up the parts we were writing.
            standing = self.find(unit.unit_id)
            if standing is None:
                raise
            return standing
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
        return self._stand(record)

    def _stand(self, record: CommitRecord) -> CommitRecord:
        """Put the record where there is none yet, and give back the one that stands.

        It is looked up before, for stores without conditional writes, and after: a write whose
        answer was lost is repeated, and then finds itself. The claim is checked once more since a
        job with other settings may take over a dataset that has no unit: it writes the head, then
        looks for records; we write the record, then look at the head. One of the two must see the
        other, and gives way.
        """
        storage = self.storage
        uri = self._record_uri(record.unit_id)
        if self.find(record.unit_id) is None:
            storage.create(uri, commit_to_json(record))
        standing = self.find(record.unit_id)
        if standing is None:
            raise StorageError(f"{uri}: the record was written and is not there")
        try:
            self._check_claim()
        except DatasetError:
            if standing.fingerprint == self.fingerprint:
                storage.delete(uri)
            raise
        return standing

    def _check_claim(self) -> None:
        """Another job may have claimed the dataset while it was still empty."""
        storage = self.storage
        head_uri = join_uri(self.uri, HEAD)
        found = read_head(storage.read(head_uri), head_uri)
        if found.fingerprint != self.fingerprint:
            raise DatasetError(
                f"{self.uri}: another job, with other settings, has taken this dataset over"
            )

    def _record_uri(self, unit_id: str) -> str:
        return join_uri(self.uri, COMMITS, f"{unit_id}.json")

    def _write_part(self, unit: Unit, name: str, table: pa.Table) -> PartRef:
        data = _parquet_bytes(table)
        digest = sha256_hex(data)
        path = f"{name}/{unit.unit_id}-{self.fingerprint[:8]}-{digest[:12]}.parquet"
        storage = self.storage
        target = join_uri(self.uri, *path.split("/"))
        for _ in range(_WRITES):
            storage.write_atomic(target, data)
            stored = storage.read(target)
            if sha256_hex(stored) == digest:
                return PartRef(name, path, table.num_rows, len(data), digest)
            log.warning("%s: %s", target, _difference(data, stored))
        raise StorageError(f"{target}: {_difference(data, stored)}, {_WRITES} times in a row")


def part_unit(name: str) -> str:
    """The unit that a part belongs to, by its file name."""
    return name.rpartition("/")[2].partition("-")[0]


def _parquet_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file, read back by its footer.

    Raises:
        StorageError: if the footer does not say what the table says.
    """
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    data = sink.getvalue()
    footer = pq.read_metadata(io.BytesIO(data))
    if footer.num_rows != table.num_rows:
        raise StorageError(f"a part's footer says {footer.num_rows} rows, not {table.num_rows}")
    return data


def _difference(written: bytes, stored: bytes) -> str:
    if len(stored) != len(written):
        return f"{len(stored)} bytes are stored, {len(written)} were written"
    return f"the {len(stored)} bytes stored are not those that were written"
