"""Whether boxes can be what they are declared to be, and what they look like instead.

Nothing in four numbers says whether they are corners or sizes, pixels or shares. One box that does
not fit is a slip, and is dropped alone; many that do not are a contradiction: the declaration is
wrong, and no box is believed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from transforms.sidecar_boxes import (
    MIN_BOXES,
    BoxConvention,
    BoxFormat,
    BoxFrame,
    Corners,
    Page,
    to_pixels,
)

Stated: TypeAlias = "tuple[Corners, Page]"
"""A box as it is stated, and what it is measured on."""

MIN_EMPTY = 0.2
"""Share of boxes that end before they begin above which the declaration is wrong."""

MIN_OUTSIDE = 0.5
"""The same of boxes off the image; lists of a whole page hold many that are below its edge."""

MAX_LEFT = 0.05
"""Share of boxes that may still not fit under a convention that is suggested."""

_EDGE = 0.02
"""Share of a side by which a box may leave the image and still be taken for one on it."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A declaration that the boxes contradict.

    Attributes:
        said: what is wrong, and what to do, for a person.
        index: position of the first box that shows it.
        likely: the convention they fit, or None where there is none.
    """

    said: str
    index: int
    likely: BoxConvention | None


def doubt(boxes: Sequence[Stated], declared: BoxConvention | None) -> Doubt | None:
    """Judge all boxes of a screen, or of several, together; None = they can be what they say.

    Args:
        boxes: as they are stated.
        declared: how they are meant; None = nobody says, which is a doubt in itself.
    """
    if not boxes:
        return None
    if declared is None:
        return _doubt(boxes, None, 0, "boxes under `bbox` need a declared convention")
    if all(to_pixels(box, declared, page) is None for box, page in boxes):
        what = "`device_pixel_ratio`" if declared.frame == "css" else "the size of the image"
        return Doubt(f"boxes in the frame {declared.frame} need {what}", 0, None)
    verdicts = [_verdict(box, declared, page) for box, page in boxes]
    empty, outside = ([i for i, v in enumerate(verdicts) if v == x] for x in ("empty", "outside"))
    if len(empty) >= MIN_BOXES and len(empty) >= MIN_EMPTY * len(boxes):
        said = f"{len(empty)} of {len(boxes)} boxes end before they begin, or are under a pixel"
        return _doubt(boxes, declared, empty[0], said)
    if len(outside) >= MIN_BOXES and len(outside) >= MIN_OUTSIDE * len(boxes):
        said = f"{len(outside)} of {len(boxes)} boxes lie off the image"
        found = _doubt(boxes, declared, outside[0], said)
        return found if found.likely else None
    return None


def _doubt(boxes: Sequence[Stated], declared: BoxConvention | None, index: int, said: str) -> Doubt:
    likely = likely_convention(boxes, declared)
    shown = f"{said} (declared {declared}), as {list(boxes[index][0])}" if declared else said
    if likely is None:
        return Doubt(f"{shown}; no known convention fits them", index, None)
    sizes = " (left, top, width, height)" if likely.format == "xywh" else ""
    advice = f"; they fit {likely}{sizes}: if so, declare it as `input.boxes` in the job, or as"
    return Doubt(f"{shown}{advice} `boxes` in the sidecar", index, likely)


def likely_convention(
    boxes: Sequence[Stated], declared: BoxConvention | None
) -> BoxConvention | None:
    """The convention under which the boxes fit, or None where there is none.

    Where several do: the declared frame in the other format, then the declared format in another
    frame, then any; of these the one under which the boxes reach furthest over their images.

    Args:
        boxes: as they are stated.
        declared: what they were taken for, which is not suggested.
    """
    candidates = itertools.starmap(
        BoxConvention, itertools.product(get_args(BoxFormat), get_args(BoxFrame))
    )
    fitting = [c for c in candidates if c != declared and _left(boxes, c) <= MAX_LEFT * len(boxes)]

    def preference(candidate: BoxConvention) -> tuple[bool, bool, float]:
        known = declared or BoxConvention()
        same_frame = declared is not None and candidate.frame == declared.frame
        return same_frame, candidate.format == known.format, _reach(boxes, candidate)

    return max(fitting, key=preference, default=None)


def _left(boxes: Sequence[Stated], convention: BoxConvention) -> int:
    """How many boxes do not fit."""
    return sum(not fits(box, convention, page) for box, page in boxes)


def fits(box: Corners, convention: BoxConvention, page: Page) -> bool:
    """Whether a box is at least a pixel wide and high and lies on its image."""
    return _verdict(box, convention, page) == "fits"


def _verdict(box: Corners, convention: BoxConvention, page: Page) -> str:
    """`fits`, `outside` the image, or `empty`: not a pixel wide and high."""
    corners = to_pixels(box, convention, page)
    if corners is None:
        return "outside"
    x1, y1, x2, y2 = corners
    if x2 - x1 < 1 or y2 - y1 < 1:
        return "empty"
    if page.size is None:
        return "fits"
    dx, dy = _EDGE * page.size.width, _EDGE * page.size.height
    inside = x1 >= -dx and y1 >= -dy and x2 <= page.size.width + dx and y2 <= page.size.height + dy
    return "fits" if inside else "outside"


def _reach(boxes: Sequence[Stated], convention: BoxConvention) -> float:
    """How far over its image the furthest box reaches; 1 = to its edge."""
    reached = [0.0]
    for box, page in boxes:
        corners = to_pixels(box, convention, page)
        if corners is not None and page.size is not None:
            reached.append(max(corners[2] / page.size.width, corners[3] / page.size.height))
    return max(reached)
