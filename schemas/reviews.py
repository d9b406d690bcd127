"""What people said of a sample, in the frame at rest: original upright pixels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from schemas.codes import QueryKind, Role, SampleStatus
from schemas.geometry import Box, Point, Size
from schemas.records import Item

NO_VERDICT = "none"
"""`verdict` of a row where the reviewer gave none: skipped, deleted, or sent without one."""


class ReviewFlag(StrEnum):
    """What was repaired in a review, or does not fit together; nothing is resolved silently."""

    ROTATED = "rotated"
    FLIPPED = "flipped"
    CLIPPED = "clipped"
    NO_LABEL = "no_label"
    UNKNOWN_LABEL = "unknown_label"
    SIZE_DIFFERS = "size_differs"
    NOT_FINITE = "not_finite"
    OUTSIDE_IMAGE = "outside_image"
    EMPTY_BOX = "empty_box"
    IMAGE_ROTATED = "image_rotated"
    MODEL_BOX_LEFT = "model_box_left"
    MODEL_POINT_LEFT = "model_point_left"
    POINT_OUTSIDE_BOX = "point_outside_box"
    EMPTY_RESULT = "empty_result"
    UNREADABLE = "unreadable"
    NO_VERDICT = "no_verdict"
    SEVERAL_VERDICTS = "several_verdicts"
    UNKNOWN_VERDICT = "unknown_verdict"
    SEVERAL_BOXES = "several_boxes"
    SEVERAL_POINTS = "several_points"
    CORRECTED_UNCHANGED = "corrected_unchanged"
    CORRECTED_WITHOUT_PLACE = "corrected_without_place"
    CORRECT_MOVED = "correct_moved"
    CORRECT_WITHOUT_PLACE = "correct_without_place"
    ABSENT_WITH_BOX = "absent_with_box"


BLOCKING = frozenset(
    {
        ReviewFlag.NOT_FINITE,
        ReviewFlag.OUTSIDE_IMAGE,
        ReviewFlag.EMPTY_BOX,
        ReviewFlag.IMAGE_ROTATED,
        ReviewFlag.POINT_OUTSIDE_BOX,
        ReviewFlag.UNREADABLE,
        ReviewFlag.NO_VERDICT,
        ReviewFlag.SEVERAL_VERDICTS,
        ReviewFlag.UNKNOWN_VERDICT,
        ReviewFlag.SEVERAL_BOXES,
        ReviewFlag.SEVERAL_POINTS,
        ReviewFlag.CORRECTED_UNCHANGED,
        ReviewFlag.CORRECTED_WITHOUT_PLACE,
        ReviewFlag.CORRECT_MOVED,
        ReviewFlag.CORRECT_WITHOUT_PLACE,
        ReviewFlag.ABSENT_WITH_BOX,
    }
)
"""A review with one of these vouches for nothing until a person looks at it again."""


@dataclass(frozen=True, slots=True)
class AskedSample:
    """What the dataset says of a sample, as much as reading its reviews needs.

    Attributes:
        items: the model's answer in original upright pixels.
        size: original upright image size in pixels.
    """

    sample_id: str
    kind: QueryKind
    status: SampleStatus
    items: tuple[Item, ...]
    size: Size


@dataclass(frozen=True, slots=True)
class ReviewedBox:
    """One box as a reviewer left it, original upright pixels.

    Attributes:
        role: element class, None where none was chosen.
        text: what the reviewer wrote for it.
        origin: `prediction`, `prediction-changed` or `manual`.
        rotation: degrees as drawn; `box` is its upright hull.
        region: id of the region on the server.
    """

    box: Box
    role: Role | None = None
    text: str | None = None
    origin: str = "manual"
    rotation: float = 0.0
    region: str = ""


@dataclass(frozen=True, slots=True)
class Versions:
    """What stood on the server when reviews were pulled: its version, and hashes of two texts."""

    server: str = ""
    interface: str = ""
    guide: str = ""


@dataclass(frozen=True, slots=True)
class AnnotationRef:
    """One version of one annotation on a server; `unique_id` is never reused, the others are.

    Attributes:
        created_at: UTC; `updated_at` likewise.
        reviewer: id of the user, as text.
    """

    task_id: int
    annotation_id: int
    unique_id: str
    reviewer: str
    created_at: datetime
    updated_at: datetime
    lead_time_s: float | None


@dataclass(frozen=True, slots=True)
class Review:
    """One version of one review of one sample: a row of `reviews`.

    Attributes:
        verdict: code of `Verdict`, or `NO_VERDICT`.
        target: the one box the reviewer vouches for, of a grounding sample; else None.
        point: the click point the reviewer vouches for, or None.
        point_origin: `prediction`, `prediction-changed` or `manual`, or None.
        boxes: every box as submitted; none where skipped.
        role: element class chosen for the sample.
        text: text written for the target.
        instruction: corrected instruction.
        foreign_regions: regions that are not of this interface: counted, kept in `result`.
        result: what the server held, as JSON; None of a deletion.
    """

    ref: AnnotationRef
    sample: AskedSample
    verdict: str
    skipped: bool = False
    deleted: bool = False
    target: ReviewedBox | None = None
    point: Point | None = None
    point_origin: str | None = None
    boxes: tuple[ReviewedBox, ...] = ()
    role: Role | None = None
    text: str | None = None
    instruction: str | None = None
    flags: tuple[ReviewFlag, ...] = ()
    foreign_regions: int = 0
    result: str | None = None
