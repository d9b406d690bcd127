"""A shard's index as bytes: one Arrow table, a row for each member and each problem."""

from __future__ import annotations

import io
import itertools
from typing import TypeAlias

import pyarrow as pa

from schemas.codes import RejectReason
from schemas.records import ByteRange, Member, Problem
from transforms.shards.base import ShardIndex

_STATE = b"pantalla.shard_state"
_ROWS_AT_ONCE = 512
_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("offset", pa.int64()),
        ("size", pa.int64()),
        ("sidecar", pa.string()),
        ("sidecar_offset", pa.int64()),
        ("sidecar_size", pa.int64()),
        ("row", pa.int64()),
        ("flags", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)


def index_to_bytes(index: ShardIndex, state: str) -> bytes:
    """Members first, then problems; the points are kept apart.

    Args:
        index: what to keep.
        state: of the shard, to be compared when it is read again.
    """
    rows = itertools.chain(map(_member_row, index.members), map(_problem_row, index.problems))
    schema = _SCHEMA.with_metadata({_STATE: state.encode()})
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        while some := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            cells = zip(*some, strict=True)
            columns = [pa.array(c, f.type) for c, f in zip(cells, _SCHEMA, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema))
    return sink.getvalue()


def index_from_bytes(data: bytes, state: str) -> ShardIndex | None:
    """The index again; None if it is one of another shard, another state, or none at all."""
    members: list[Member] = []
    problems: list[Problem] = []
    try:
        with pa.ipc.open_stream(data) as reader:
            if (reader.schema.metadata or {}).get(_STATE) != state.encode():
                return None
            for batch in reader:
                _read_batch(batch, members, problems)
    except (pa.ArrowException, KeyError, ValueError, TypeError):
        return None
    return ShardIndex(tuple(members), tuple(problems))


def _read_batch(batch: pa.RecordBatch, members: list[Member], problems: list[Problem]) -> None:
    cells = zip(*(batch[name].to_pylist() for name in _SCHEMA.names), strict=True)
    for name, offset, size, sidecar, sidecar_at, sidecar_size, row, flags, reason, detail in cells:
        if reason is not None:
            problems.append(Problem(name, RejectReason(reason), detail))
            continue
        image = ByteRange(name, offset, size)
        beside = None if sidecar is None else ByteRange(sidecar, sidecar_at, sidecar_size)
        marks = tuple(flags.split()) if flags else ()
        members.append(Member(name, image, beside, row=row, flags=marks))


_Cell: TypeAlias = "str | int | None"


def _member_row(member: Member) -> tuple[_Cell, ...]:
    sidecar = member.sidecar
    where = (sidecar.name, sidecar.offset, sidecar.size) if sidecar else (None, None, None)
    image = member.image
    flags = " ".join(member.flags) or None
    return (member.name, image.offset, image.size, *where, member.row, flags, None, None)


def _problem_row(problem: Problem) -> tuple[_Cell, ...]:
    return (problem.member, *(None,) * 7, problem.reason.value, problem.detail)
