"""One annotation of the server as a review: the verdict, and what it vouches for.

Nothing on the server ties the verdict to what is drawn, so the two are compared here. What does
not fit together is flagged and never resolved: see `ReviewFlag`.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from label_studio.pull_regions import Drawn, DrawnPoint, read_regions
from schemas.codes import QueryKind, Role, SampleStatus, Verdict
from schemas.geometry import Box, Point
from schemas.reviews import (
    NO_VERDICT,
    AnnotationRef,
    AskedSample,
    Review,
    ReviewedBox,
    ReviewFlag,
)

MOVED_PX = 0.5
"""A side or point that moved less than this is where the model put it: a hand does not aim finer
than a pixel, and a place that went to the server and back is off by 1e-9."""

_PREDICTION, _CHANGED, _MANUAL = "prediction", "prediction-changed", "manual"
_ORIGINS = (_PREDICTION, _CHANGED, _MANUAL)
_ROLES = {role.value: role for role in Role}
_VERDICTS = frozenset(verdict.value for verdict in Verdict)
_Place = TypeVar("_Place", ReviewedBox, DrawnPoint)
_PLACED = (Verdict.CORRECT.value, Verdict.CORRECTED.value)


class ExportedAnnotation(BaseModel):
    """One annotation as an export of the server holds it."""

    model_config = ConfigDict(frozen=True)

    id: int
    result: JsonValue = None
    was_cancelled: bool = False
    completed_by: int | None = None
    created_at: datetime
    updated_at: datetime
    lead_time: float | None = None
    unique_id: str | None = None

    def ref(self, task_id: int) -> AnnotationRef:
        """Which version of which annotation this is."""
        return AnnotationRef(
            task_id=task_id,
            annotation_id=self.id,
            unique_id=self.unique_id or "",
            reviewer="" if self.completed_by is None else str(self.completed_by),
            created_at=self.created_at,
            updated_at=self.updated_at,
            lead_time_s=self.lead_time,
        )


def read_review(task_id: int, annotation: ExportedAnnotation, sample: AskedSample) -> Review:
    """Read one annotation; total on whatever the server keeps in it.

    Args:
        task_id: its task.
        annotation: as exported.
        sample: what our dataset says was asked, and what the model answered.
    """
    review = Review(
        ref=annotation.ref(task_id),
        sample=sample,
        verdict=NO_VERDICT,
        skipped=annotation.was_cancelled,
        result=json.dumps(annotation.result, ensure_ascii=False, sort_keys=True),
    )
    if not isinstance(annotation.result, list):
        return replace(review, flags=() if review.skipped else (ReviewFlag.UNREADABLE,))
    drawn = read_regions(annotation.result, sample.size)
    if review.skipped:
        # It holds the model's regions all the same: nobody vouches for them.
        return replace(review, foreign_regions=drawn.foreign)
    verdict = _verdict(annotation.result, drawn)
    read = replace(
        review,
        verdict=verdict,
        boxes=tuple(_with_origin(box, sample) for box in drawn.boxes),
        role=_only_role(drawn),
        instruction=drawn.instruction,
        foreign_regions=drawn.foreign,
    )
    if sample.kind is QueryKind.LOCALIZATION:
        read = _judge_all(read, drawn)
    else:
        read = _judge_one(read, drawn)
    return replace(read, flags=tuple(sorted(drawn.flags)))


def _verdict(result: Sequence[JsonValue], drawn: Drawn) -> str:
    if not result:
        drawn.flags.add(ReviewFlag.EMPTY_RESULT)
        return Verdict.ABSENT.value
    chosen = set(drawn.verdicts)
    if not chosen:
        drawn.flags.add(ReviewFlag.NO_VERDICT)
    elif len(chosen) > 1:
        drawn.flags.add(ReviewFlag.SEVERAL_VERDICTS)
    elif chosen <= _VERDICTS:
        return chosen.pop()
    else:
        drawn.flags.add(ReviewFlag.UNKNOWN_VERDICT)
    return NO_VERDICT


def _only_role(drawn: Drawn) -> Role | None:
    if len(drawn.roles) == 1 and drawn.roles[0] in _ROLES:
        return _ROLES[drawn.roles[0]]
    if drawn.roles:
        drawn.flags.add(ReviewFlag.UNKNOWN_LABEL)
    return None


def _with_origin(box: ReviewedBox, sample: AskedSample) -> ReviewedBox:
    """`box` with an origin where the server names none: annotations made through the API."""
    if box.origin in _ORIGINS:
        return box
    return replace(box, origin=_MANUAL if _box_moved(box.box, sample) else _PREDICTION)


def _judge_one(review: Review, drawn: Drawn) -> Review:
    """Grounding: the one place that the verdict vouches for, and whether both fit together."""
    sample, flags = review.sample, drawn.flags
    new_boxes = [box for box in review.boxes if _box_moved(box.box, sample)]
    new_points = [point for point in drawn.points if _point_moved(point.point, sample)]
    target, box_left = _chosen(new_boxes, review.boxes, ReviewFlag.SEVERAL_BOXES, flags)
    point, point_left = _chosen(new_points, drawn.points, ReviewFlag.SEVERAL_POINTS, flags)
    moved = bool(new_boxes or new_points) or _taken_away(review, drawn)
    if review.verdict == Verdict.ABSENT:
        flags -= {ReviewFlag.SEVERAL_BOXES, ReviewFlag.SEVERAL_POINTS}
        if new_boxes or new_points:
            flags.add(ReviewFlag.ABSENT_WITH_BOX)
        elif review.boxes or drawn.points:
            flags.add(ReviewFlag.MODEL_BOX_LEFT)
    if review.verdict not in _PLACED:
        return review
    if target and point and not target.box.contains(point.point):
        target, point = _one_of(target, point, new_boxes, new_points, flags)
    if box_left:
        flags.add(ReviewFlag.MODEL_BOX_LEFT)
    if point_left:
        flags.add(ReviewFlag.MODEL_POINT_LEFT)
    _check_verdict(review, flags, moved=moved, placed=bool(target or point))
    role = review.role or (target.role if target else None)
    return replace(
        review,
        target=target,
        point=point.point if point else None,
        point_origin=_point_origin(point, sample) if point else None,
        role=role,
        text=target.text if target else None,
    )


def _chosen(
    new: Sequence[_Place], every: Sequence[_Place], several: ReviewFlag, flags: set[ReviewFlag]
) -> tuple[_Place | None, bool]:
    """The one place meant, and whether the model's own was left beside it.

    A reviewer who draws anew need not delete the model's; two new ones are for a person to settle.
    """
    found = new or every
    if len(found) > 1:
        flags.add(several)
        return None, False
    return (found[0] if found else None), len(every) > len(found)


def _one_of(
    target: ReviewedBox,
    point: DrawnPoint,
    new_boxes: Sequence[ReviewedBox],
    new_points: Sequence[DrawnPoint],
    flags: set[ReviewFlag],
) -> tuple[ReviewedBox | None, DrawnPoint | None]:
    """Of a box and a point apart from each other, the one the reviewer moved."""
    if new_boxes and not new_points:
        flags.add(ReviewFlag.MODEL_POINT_LEFT)
        return target, None
    if new_points and not new_boxes:
        flags.add(ReviewFlag.MODEL_BOX_LEFT)
        return None, point
    flags.add(ReviewFlag.POINT_OUTSIDE_BOX)
    return target, point


def _check_verdict(review: Review, flags: set[ReviewFlag], *, moved: bool, placed: bool) -> None:
    """Flag a verdict that says something else than what is drawn."""
    if review.verdict == Verdict.CORRECTED:
        relabelled = review.instruction or _other_role(review)
        if not placed:
            flags.add(ReviewFlag.CORRECTED_WITHOUT_PLACE)
        elif not moved and not relabelled:
            flags.add(ReviewFlag.CORRECTED_UNCHANGED)
        return
    said_absent = review.sample.status is SampleStatus.ABSENT
    if moved:
        flags.add(ReviewFlag.CORRECT_MOVED)
    elif not placed and not said_absent:
        flags.add(ReviewFlag.CORRECT_WITHOUT_PLACE)


def _judge_all(review: Review, drawn: Drawn) -> Review:
    """Localization: every box counts; the model's points are not drawn and not asked for."""
    flags, sample = drawn.flags, review.sample
    moved = any(_box_moved(box.box, sample) for box in review.boxes)
    moved = moved or len(review.boxes) != sum(item.box is not None for item in sample.items)
    if review.verdict == Verdict.ABSENT and review.boxes:
        flags.add(ReviewFlag.ABSENT_WITH_BOX if moved else ReviewFlag.MODEL_BOX_LEFT)
    if review.verdict in _PLACED:
        _check_verdict(review, flags, moved=moved, placed=bool(review.boxes))
    return review


def _taken_away(review: Review, drawn: Drawn) -> bool:
    """Whether the reviewer deleted the model's box or point."""
    items = review.sample.items
    box_gone = any(item.box for item in items) and not review.boxes
    point_gone = any(item.point for item in items) and not drawn.points
    return box_gone or point_gone


def _other_role(review: Review) -> bool:
    """Whether a class or a text was given that the model had not."""
    theirs = Counter(item.role for item in review.sample.items if item.box)
    ours = Counter(box.role for box in review.boxes)
    chosen = review.role is not None and all(i.role is not review.role for i in review.sample.items)
    labels = {_as_pushed(item.label or "") for item in review.sample.items}
    retyped = any(box.text and box.text not in labels for box in review.boxes)
    return chosen or retyped or ours != theirs


def _as_pushed(label: str) -> str:
    """The text of an element as its task shows it."""
    return " ".join(unicodedata.normalize("NFC", label).split())


def _box_moved(box: Box, sample: AskedSample) -> bool:
    known = (item.box for item in sample.items if item.box is not None)
    return not any(_near(box.corners, other.corners) for other in known)


def _point_moved(point: Point, sample: AskedSample) -> bool:
    known = (item.point for item in sample.items if item.point is not None)
    return not any(_near((point.x, point.y), (other.x, other.y)) for other in known)


def _near(first: Iterable[float], second: Iterable[float]) -> bool:
    return all(abs(a - b) <= MOVED_PX for a, b in zip(first, second, strict=True))


def _point_origin(point: DrawnPoint, sample: AskedSample) -> str:
    if point.origin in _ORIGINS:
        return point.origin or _MANUAL
    return _MANUAL if _point_moved(point.point, sample) else _PREDICTION
