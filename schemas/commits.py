"""Commit records and the head file of a dataset as JSON, strictly, both ways."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from schemas.caches import CacheCounts
from schemas.errors import DatasetError


@dataclass(frozen=True, slots=True)
class PartRef:
    """One committed Parquet part; `path` is relative to the dataset."""

    table: str
    path: str
    rows: int
    byte_size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """The counts of one unit; they add up, see `balanced`.

    Attributes:
        members: images the plan listed, plus problems the plan found.
        members_rejected: of these, how many became rejects.
        queries: questions asked of the unit's screens.
        queries_rejected: of these, how many became rejects.
        statuses: samples by `SampleStatus`; `routes`: samples by `Route`.
        rejects: rows of `rejects` by reason.
    """

    members: int = 0
    screens: int = 0
    members_rejected: int = 0
    queries: int = 0
    samples: int = 0
    queries_rejected: int = 0
    notices: int = 0
    annotation_rows: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    truth_judged: int = 0
    truth_hits: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    routes: dict[str, int] = field(default_factory=dict)
    rejects: dict[str, int] = field(default_factory=dict)

    @property
    def balanced(self) -> bool:
        """Whether in = out + rejected at both levels, and the tallies agree."""
        return (
            self.members == self.screens + self.members_rejected
            and self.queries == self.samples + self.queries_rejected
            and sum(self.statuses.values()) == self.samples
            and sum(self.routes.values()) == self.samples
            and sum(self.rejects.values())
            == self.members_rejected + self.queries_rejected + self.notices
        )


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """What the worker spent on a unit; volatile, unlike everything else in a commit record.

    Attributes:
        seconds: wall time from the unit's first read to its commit; units overlap.
        engine_busy_seconds: time with at least one request in the engine since the worker's
            previous commit, so that the sum over units is the engine's busy time.
        engine_step_seconds: of the same time, what was spent in the engine's steps; the rest went
            into rendering prompts and images, and into our own work. Where the engine runs in a
            process of its own it includes waiting for it.
        engine_start_seconds: time the engine took to start, on the worker's first unit, else 0.
        peak_memory_bytes: largest resident memory of the worker and its children so far.
        cached_tokens: prompt tokens the engine did not have to compute again.
        caches: what the engine's caches of images did since the worker's previous commit.
    """

    engine: str = ""
    engine_version: str = ""
    pid: int = 0
    seconds: float = 0.0
    engine_busy_seconds: float = 0.0
    engine_start_seconds: float = 0.0
    peak_memory_bytes: int = 0
    cached_tokens: int = 0
    engine_step_seconds: float = 0.0
    caches: CacheCounts = field(default_factory=CacheCounts)


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """The proof that a unit exists: what leaves the worker, and what readers follow.

    Attributes:
        fingerprint: hash of everything that shapes rows; a dataset holds only one.
        reused: whether the unit was there already; only ever true in memory.
    """

    unit_id: str
    unit_index: int
    shard: str
    fingerprint: str
    schema_version: str
    parts: tuple[PartRef, ...]
    counts: UnitCounts
    worker: WorkerStats = WorkerStats()
    reused: bool = False


class DatasetHead(BaseModel):
    """What a dataset says of itself before any unit is committed.

    Attributes:
        fingerprint: hash of everything that shapes rows; a dataset holds only one.
        ingredients: what the fingerprint is made of, for people and for naming differences.
    """

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    schema_version: str
    ingredients: dict[str, JsonValue]


def head_to_json(head: DatasetHead) -> bytes:
    """The head file as indented UTF-8 JSON."""
    return head.model_dump_json(indent=1).encode()


def read_head(data: bytes, uri: str) -> DatasetHead:
    """Read a head file.

    Args:
        data: the file's bytes.
        uri: where it came from, for the error.

    Raises:
        DatasetError: if it is not a head file.
    """
    try:
        return DatasetHead.model_validate_json(data)
    except ValidationError as error:
        raise DatasetError(f"{uri}: not the head file of a dataset: {error}") from error


def commit_to_json(record: CommitRecord) -> bytes:
    """One commit record as indented UTF-8 JSON; `reused` is memory only and left out."""
    return _adapter().dump_json(record, indent=1, exclude={"reused"})


def commit_from_json(data: bytes, uri: str) -> CommitRecord:
    """Read a commit record.

    Args:
        data: the file's bytes.
        uri: where it came from, for the error.

    Raises:
        DatasetError: if it is not exactly a commit record.
    """
    try:
        return _adapter().validate_json(data)
    except ValidationError as error:
        raise DatasetError(f"{uri}: not a commit record: {error}") from error


@functools.cache  # 12 ms to make, three times a unit
def _adapter() -> TypeAdapter[CommitRecord]:
    return TypeAdapter(CommitRecord)
