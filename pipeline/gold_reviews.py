"""The reviews that stand, by sample, as opinions that can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from pipeline.gold_agreement import Opinion
from schemas.codes import QueryKind
from schemas.geometry import Box, Point, Size
from schemas.reviews import BLOCKING

_BLOCKING = frozenset(flag.value for flag in BLOCKING)
_CORNERS = ("x1", "y1", "x2", "y2")


@dataclass(frozen=True, slots=True)
class GoldBox:
    """One box that people vouch for, original upright pixels."""

    box: Box
    role: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class StandingReview:
    """The last version of one review that was neither deleted nor skipped.

    Attributes:
        target: the box vouched for, of a grounding sample.
        boxes: all boxes as submitted.
        blocked: flags that forbid to count it before another look.
    """

    sample_id: str
    kind: QueryKind
    size: Size
    opinion: Opinion
    review_id: str
    server: str
    project_id: int
    task_id: int
    updated_at: datetime
    target: GoldBox | None
    boxes: tuple[GoldBox, ...]
    role: str | None
    instruction: str | None
    flags: tuple[str, ...]

    @property
    def blocked(self) -> tuple[str, ...]:
        """The flags that forbid to count this review."""
        return tuple(flag for flag in self.flags if flag in _BLOCKING)


def standing_reviews(latest: pa.Table) -> dict[str, list[StandingReview]]:
    """By sample, oldest first; skipped ones are left out.

    Args:
        latest: a `reviews` table with one row for each review.
    """
    found: dict[str, list[StandingReview]] = defaultdict(list)
    for row in latest.to_pylist():
        if not row["skipped"]:
            found[row["sample_id"]].append(_standing(row))
    for reviews in found.values():
        reviews.sort(key=lambda review: (review.updated_at, review.review_id))
    return dict(found)


def _standing(row: Mapping[str, Any]) -> StandingReview:
    kind = QueryKind(row["query_kind"])
    target = _gold_box({**row, "text": row["label"]}) if row["x1"] is not None else None
    boxes = tuple(_gold_box(box) for box in row["boxes"])
    compared = boxes if kind is QueryKind.LOCALIZATION else tuple([target] if target else [])
    return StandingReview(
        sample_id=row["sample_id"],
        kind=kind,
        size=Size(row["image_width"], row["image_height"]),
        opinion=Opinion(
            reviewer=row["reviewer"] or "",
            annotation_id=row["annotation_id"],
            verdict=row["verdict"],
            point=None if row["x"] is None else Point(row["x"], row["y"]),
            boxes=tuple(box.box for box in compared),
            seconds=row["lead_time_s"],
        ),
        review_id=row["review_id"],
        server=row["server"],
        project_id=row["project_id"],
        task_id=row["task_id"],
        updated_at=row["updated_at"],
        target=target,
        boxes=boxes,
        role=row["role"],
        instruction=row["instruction"],
        flags=tuple(row["flags"]),
    )


def _gold_box(row: Mapping[str, Any]) -> GoldBox:
    return GoldBox(Box(*(row[name] for name in _CORNERS)), row["role"], row["text"])
