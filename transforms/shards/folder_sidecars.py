"""The sidecars of a folder's images: JSON files, records of metadata tables, agents' messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.ids import sha256_hex
from schemas.records import ByteRange, Member, Shard, ShardKind
from transforms.shards.folder_tables import table_uri
from transforms.shards.metadata import csv_fields, csv_header
from transforms.shards.names import MESSAGES_NAME, base_name, is_image, is_metadata, suffix
from transforms.shards.parquet_columns import sidecar_bytes
from transforms.shards.webvoyager import HEAD_BYTES, screen_facts
from transforms.source_text import decode_text, load_json
from transforms.storage import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    Storage,
)

_AT_ONCE = 4 * 2**20
"""Records of one unit that lie this close together are fetched in one request."""

_BATCH_ROWS = 64


def read_file(shard: Shard, span: ByteRange, storage: Storage) -> bytes:
    """A whole file of the folder.

    Raises:
        MemberRejected: if the file is gone, may not be read, or has another size.
    """
    data = _read(table_uri(shard, span.name), storage, None)
    return _as_planned(data, span)


class FolderSidecars:
    """Fetches the sidecars of a unit's members, each file as seldom as it can be.

    Args:
        shard: the folder.
        members: those that will be asked for.
        storage: where the folder is.
    """

    def __init__(self, shard: Shard, members: Sequence[Member], storage: Storage) -> None:
        self._shard = shard
        self._members = members
        self._storage = storage
        self._headers: dict[str, list[str]] = {}
        self._extents: dict[str, tuple[int, bytes]] = {}
        self._rows: dict[str, dict[int, bytes | None]] = {}
        self._messages: tuple[str, bytes] = ("", b"")

    def fetch(self, member: Member) -> bytes | None:
        """The sidecar of a member as JSON, or None where it has none.

        Raises:
            MemberRejected: if the file it stands in is gone, may not be read, or has changed.
        """
        span = member.sidecar
        if span is None:
            return None
        if is_metadata(span.name):
            if member.sidecar_row is not None:
                return self._parquet_row(span, member.sidecar_row)
            return self._record(span)
        if self._shard.kind is ShardKind.WEBVOYAGER and base_name(span.name) == MESSAGES_NAME:
            return screen_facts(member.name, self._head(span))
        return read_file(self._shard, span, self._storage)

    def _record(self, span: ByteRange) -> bytes:
        record = self._slice(span)
        if suffix(span.name) != ".csv":
            return _with_query_json(record)
        fields = csv_fields(self._header(span.name), record)
        return _dump(
            _with_query({name: _value(name, cell) for name, cell in fields.items() if cell})
        )

    def _slice(self, span: ByteRange) -> bytes:
        if span.name not in self._extents:
            self._extents[span.name] = self._extent(span.name)
        start, data = self._extents[span.name]
        inside = (span.offset or 0) - start
        if not data:
            uri = table_uri(self._shard, span.name)
            return _as_planned(_read(uri, self._storage, span), span)
        return _as_planned(data[inside : inside + span.size], span)

    def _extent(self, name: str) -> tuple[int, bytes]:
        """The run of bytes that holds all records of this unit, or nothing where it is long."""
        spans = [m.sidecar for m in self._members if m.sidecar and m.sidecar.name == name]
        start = min(span.offset or 0 for span in spans)
        end = max((span.offset or 0) + span.size for span in spans)
        if end - start > _AT_ONCE:
            return start, b""
        whole = ByteRange(name, start, end - start)
        return start, _read(table_uri(self._shard, name), self._storage, whole)

    def _header(self, name: str) -> list[str]:
        if name not in self._headers:
            with closing(self._storage.open(table_uri(self._shard, name))) as file:
                self._headers[name] = csv_header(file)
        return self._headers[name]

    def _parquet_row(self, span: ByteRange, row: int) -> bytes | None:
        if span.name not in self._rows:
            wanted = {
                m.sidecar_row
                for m in self._members
                if m.sidecar and m.sidecar.name == span.name and m.sidecar_row is not None
            }
            self._rows[span.name] = self._parquet_rows(span, wanted)
        found = self._rows[span.name].get(row)
        return None if found is None else _with_query_json(found)

    def _parquet_rows(self, span: ByteRange, wanted: set[int]) -> dict[int, bytes | None]:
        found: dict[int, bytes | None] = {}
        number = 0
        try:
            with (
                closing(self._storage.open(table_uri(self._shard, span.name))) as file,
                pq.ParquetFile(file) as table,
            ):
                for batch in table.iter_batches(_BATCH_ROWS):
                    inside = [row for row in wanted if number <= row < number + batch.num_rows]
                    rows = batch.to_struct_array() if inside else None
                    found |= {row: sidecar_bytes(rows[row - number]) for row in inside}  # type: ignore[index] # there are some
                    number += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise MemberRejected(RejectReason.SHARD_CHANGED, f"{span.name}: {error}") from error
        return found

    def _head(self, span: ByteRange) -> bytes:
        """The beginning of a messages file; the screens of a task come one after the other."""
        if self._messages[0] != span.name:
            head = ByteRange(span.name, 0, min(span.size, HEAD_BYTES))
            uri = table_uri(self._shard, span.name)
            self._messages = (span.name, _read(uri, self._storage, head))
        return self._messages[1]


def _read(uri: str, storage: Storage, span: ByteRange | None) -> bytes:
    """A file, or a run of its bytes."""
    try:
        if span is None:
            return storage.read(uri)
        return storage.read_range(uri, span.offset or 0, span.size)
    except (ObjectMissingError, ObjectChangedError) as error:
        raise MemberRejected(RejectReason.SHARD_CHANGED, str(error)) from error
    except ObjectDeniedError as error:
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, str(error)) from error


def _as_planned(data: bytes, span: ByteRange) -> bytes:
    if len(data) != span.size:
        detail = f"{span.name}: {len(data)} bytes now, {span.size} when the job was planned"
        digest = sha256_hex(data) if is_image(span.name) else None
        raise MemberRejected(RejectReason.SHARD_CHANGED, detail, digest)
    return data


def _with_query_json(record: bytes) -> bytes:
    """The record as it is, unless an `instruction` in it has to become a query."""
    text, _ = decode_text(record)
    try:
        fields = load_json(text)
    except ValueError:
        return record  # the sidecar's reader says what is wrong with it
    if not isinstance(fields, dict) or "queries" in fields or "instruction" not in fields:
        return record
    return _dump(_with_query(fields))


def _with_query(fields: dict[str, object]) -> dict[str, object]:
    if "queries" in fields or "instruction" not in fields:
        return fields
    keys = ("instruction", "bbox_px", "target", "accept_bbox_px")
    return {**fields, "queries": [{key: fields[key] for key in keys if key in fields}]}


def _value(name: str, cell: str) -> object:
    """A cell of a CSV file: lists and objects are JSON, the pixel ratio is a number."""
    if cell[:1] in {"[", "{"} or name == "device_pixel_ratio":
        try:
            return load_json(cell)
        except ValueError:
            return cell
    return cell


def _dump(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()
