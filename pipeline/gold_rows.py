"""Rows of `gold`: what people vouch for, beside what the model answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.dataset import Dataset
from pipeline.gold_agreement import ABSENT
from pipeline.gold_reviews import GoldBox, StandingReview
from schemas.codes import QueryKind, Verdict
from schemas.geometry import FrameKind
from transforms.rows import Row

ACCEPTED, CORRECTED = "accepted", "corrected"

_COPIED = (
    "sample_id",
    "screen_id",
    "shard",
    "member",
    "query_kind",
    "locale",
    "image_width",
    "image_height",
    "route",
    "probability",
    "probability_source",
    "profile",
    "model",
    "model_revision",
    "model_licence",
    "prompt_version",
    "image_licence",
)
_PLACE = ("x", "y", "x1", "y1", "x2", "y2")
_READ = (*_COPIED, *_PLACE, "element_index", "instruction", "status", "role", "label")


@dataclass(frozen=True, slots=True)
class Asked:
    """A sample of the dataset: cells that gold copies, and what the model answered."""

    copied: Row
    instruction: str
    answer: Row


def asked_cells(dataset: Dataset, sample_ids: Collection[str]) -> dict[str, Asked]:
    """Of these samples, what gold says of each; parts are read one at a time.

    Raises:
        DatasetError: if a part is missing or damaged.
    """
    wanted = pa.array(sorted(sample_ids), pa.string())
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for _, part in dataset.parts("annotations", _READ):
        for row in part.filter(pc.is_in(part["sample_id"], wanted)).to_pylist():
            grouped.setdefault(row["sample_id"], []).append(row)
    return {key: _asked(rows) for key, rows in grouped.items()}


def gold_row(agreeing: Sequence[StandingReview], asked: Asked, app: str | None) -> Row:
    """The row of a sample on which all its reviews agree.

    Geometry is one reviewer's, never a mean of several: the latest who corrected it, else the
    latest.

    Args:
        agreeing: its reviews, oldest first.
        asked: what the dataset says of it.
        app: application shown, where known.
    """
    chosen = next((r for r in reversed(agreeing) if _corrects(r)), agreeing[-1])
    fixed = next((r.instruction for r in reversed(agreeing) if r.instruction), None)
    outcome = _outcome(chosen)
    placed = outcome != ABSENT
    return {
        **asked.copied,
        "app": app,
        "instruction": fixed or asked.instruction,
        "instruction_asked": asked.instruction,
        "outcome": outcome,
        **_place(chosen if placed else None),
        "frame": FrameKind.ORIGINAL_PX.value,
        "role": chosen.role if placed else None,
        "label": chosen.target.text if placed and chosen.target else None,
        "boxes": [_box(box) for box in _boxes(chosen)] if placed else [],
        "reviewers": [review.opinion.reviewer for review in agreeing],
        "annotation_ids": [review.opinion.annotation_id for review in agreeing],
        "review_ids": [review.review_id for review in agreeing],
        "verdicts": [review.opinion.verdict for review in agreeing],
        "reviewed_at": max(review.updated_at for review in agreeing),
        "answer": asked.answer,
        "flags": sorted({flag for review in agreeing for flag in review.flags}),
    }


def _outcome(review: StandingReview) -> str:
    if review.opinion.stand == ABSENT:
        return ABSENT
    return CORRECTED if _corrects(review) else ACCEPTED


def _corrects(review: StandingReview) -> bool:
    return review.opinion.verdict == Verdict.CORRECTED


def _boxes(review: StandingReview) -> tuple[GoldBox, ...]:
    if review.kind is QueryKind.LOCALIZATION:
        return review.boxes
    return (review.target,) if review.target else ()


def _place(review: StandingReview | None) -> Row:
    point = review.opinion.point if review else None
    box = review.target.box if review and review.target else None
    corners = box.corners if box else (None, None, None, None)
    where = (point.x, point.y) if point else (None, None)
    return dict(zip(_PLACE, (*where, *corners), strict=True))


def _box(box: GoldBox) -> Row:
    corners = dict(zip(("x1", "y1", "x2", "y2"), box.box.corners, strict=True))
    return {**corners, "role": box.role, "text": box.text}


def _asked(rows: Sequence[Mapping[str, Any]]) -> Asked:
    ordered = sorted(rows, key=lambda row: int(row["element_index"]))
    first = ordered[0]
    boxes: list[Row] = [
        {**{name: row[name] for name in _PLACE[2:]}, "role": row["role"], "text": row["label"]}
        for row in ordered
        if row["x1"] is not None
    ]
    place: Row = {name: first[name] for name in _PLACE}
    return Asked(
        copied={name: first[name] for name in _COPIED},
        instruction=first["instruction"],
        answer={"status": first["status"], **place, "boxes": boxes},
    )
