"""What a dataset knows of reviews already: the versions it holds, and which of them still stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from pipeline.pull_records import review_parts
from schemas.ids import content_id
from schemas.reviews import AnnotationRef
from schemas.tables import REVIEWS
from transforms.storage import Storage

_COLUMNS = (
    "sample_id",
    "annotation_id",
    "unique_id",
    "reviewer",
    "created_at",
    "updated_at",
    "deleted",
    "server",
    "project_id",
    "task_id",
)


@dataclass(frozen=True, slots=True)
class KnownReview:
    """The latest version of one annotation in the dataset."""

    sample_id: str
    ref: AnnotationRef
    deleted: bool


@dataclass(slots=True)
class KnownReviews:
    """Everything that is known of one project's annotations.

    Attributes:
        versions: key of an annotation with the time of each version.
        latest: by key.
        keys_of: keys of the project's annotations by their task.
    """

    versions: set[tuple[str, datetime]] = field(default_factory=set)
    latest: dict[str, KnownReview] = field(default_factory=dict)
    keys_of: dict[int, set[str]] = field(default_factory=dict)

    def has(self, ref: AnnotationRef) -> bool:
        """Whether this version is known."""
        return (annotation_key(ref), ref.updated_at) in self.versions

    def knows(self, ref: AnnotationRef) -> bool:
        """Whether any version of this annotation is known."""
        return annotation_key(ref) in self.latest

    def gone(self, task_id: int, present: Iterable[AnnotationRef]) -> list[KnownReview]:
        """Known annotations of a task that are not among those it has now."""
        there = {annotation_key(ref) for ref in present}
        missing = sorted(self.keys_of.get(task_id, set()) - there)
        return [self.latest[key] for key in missing if not self.latest[key].deleted]


def annotation_key(ref: AnnotationRef) -> str:
    """What tells one annotation from all others, on any server.

    The plain id is given to another annotation after a deletion on SQLite; its UUID never is, and
    two annotations of one id differ in the microsecond they were made.
    """
    return ref.unique_id or f"{ref.annotation_id}@{ref.created_at.isoformat()}"


def review_id(ref: AnnotationRef, *, deleted: bool) -> str:
    """Key of one row of `reviews`."""
    return content_id([annotation_key(ref), ref.updated_at.isoformat(), deleted])


def known_reviews(storage: Storage, dataset: str, server: str, project_id: int) -> KnownReviews:
    """Read what the dataset holds; versions of any server, tasks of this project alone.

    Raises:
        DatasetError: if a part is missing or damaged.
    """
    known = KnownReviews()
    for part in review_parts(storage, dataset, _COLUMNS):
        for row in part.to_pylist():
            ref = AnnotationRef(
                task_id=row["task_id"],
                annotation_id=row["annotation_id"],
                unique_id=row["unique_id"] or "",
                reviewer=row["reviewer"] or "",
                created_at=row["created_at"],
                updated_at=row["updated_at"],
                lead_time_s=None,
            )
            ours = (row["server"], row["project_id"]) == (server, project_id)
            _add(known, KnownReview(row["sample_id"], ref, row["deleted"]), ours=ours)
    return known


def latest_reviews(table: pa.Table) -> pa.Table:
    """Of a `reviews` table, the rows that stand: the last version of each annotation that is left.

    Skipped ones are among them. Rows of the same version count once.
    """
    names = ("unique_id", "annotation_id", "created_at", "updated_at", "deleted")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    last: dict[str, tuple[tuple[datetime, bool], int]] = {}
    for index, (unique, number, created, updated, deleted) in enumerate(rows):
        key = unique or f"{number}@{created.isoformat()}"
        version = (updated, deleted)
        if key not in last or version > last[key][0]:
            last[key] = (version, index)
    standing = sorted(index for (_, deleted), index in last.values() if not deleted)
    return table.take(pa.array(standing, pa.int64()))


def all_reviews(storage: Storage, dataset: str) -> pa.Table:
    """All committed rows of `reviews`, in the order they were pulled."""
    return pa.concat_tables([REVIEWS.empty_table(), *review_parts(storage, dataset)])


def _add(known: KnownReviews, row: KnownReview, *, ours: bool) -> None:
    key = annotation_key(row.ref)
    known.versions.add((key, row.ref.updated_at))
    before = known.latest.get(key)
    if before is None or (row.ref.updated_at, row.deleted) > (
        before.ref.updated_at,
        before.deleted,
    ):
        known.latest[key] = row
    if ours:
        known.keys_of.setdefault(row.ref.task_id, set()).add(key)
