"""What a sidecar states about boxes, before any of it is believed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.geometry import Size
from transforms.sidecar_boxes import (
    RATIO_KEYS,
    BoxConvention,
    Corners,
    Page,
    convention_of,
    entries,
    numbers,
    other_boxes,
    stated_box,
)
from transforms.sidecar_doubt import Doubt, doubt

_UNDECLARED = ("bbox", "accept_bbox")
_SLACK = 0.02
_TRUTH = frozenset({"bbox_px", "bbox", "accept_bbox_px", "accept_bbox", "target"})


@dataclass(frozen=True, slots=True)
class Statement:
    """The boxes of one sidecar.

    Attributes:
        convention: how they are meant; None = under `bbox`, and nobody declares it.
        boxes: those that are four finite numbers.
        problem: a declaration that cannot be followed at all, for a person, or empty.
    """

    page: Page
    convention: BoxConvention | None
    boxes: tuple[Corners, ...]
    problem: str = ""

    @property
    def doubt(self) -> Doubt | None:
        """Why the boxes cannot be what they are declared to be, or None."""
        if self.problem:
            return Doubt(self.problem, 0, None)
        return doubt([(box, self.page) for box in self.boxes], self.convention)


def read_statement(
    fields: dict[str, object], size: Size | None, job: BoxConvention | None
) -> Statement:
    """What a sidecar states.

    Its own declaration, `boxes`, wins over the job's. Without either, `bbox_px` is corners in
    pixels, and `bbox` is not known.

    Args:
        fields: the sidecar.
        size: upright size of the image, or None where nobody knows it.
        job: what the job declares.
    """
    page = Page(size, device_pixel_ratio(fields) or _ratio_of_viewport(fields, size))
    boxes = tuple(_stated(fields))
    try:
        declared = convention_of(fields.get("boxes")) or job
    except ValueError as error:
        return Statement(page, None, boxes, str(error))
    if declared is not None:
        problem = _contradicted_ratio(fields, size) if declared.frame == "css" else ""
        return Statement(page, declared, boxes, problem)
    unknown = any(entry.get(key) for entry in entries(fields) for key in _UNDECLARED)
    return Statement(page, None if unknown else BoxConvention(), boxes)


def device_pixel_ratio(fields: dict[str, object]) -> float | None:
    """Device pixels a CSS pixel as the sidecar states it, or None."""
    ratio = next((fields[key] for key in RATIO_KEYS if is_number(fields.get(key))), None)
    return float(ratio) if isinstance(ratio, int | float) and ratio > 0 else None


def is_number(value: object) -> bool:
    """Whether `value` is a finite number; JSON as Python reads it has NaN and endless integers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def without_truth(fields: dict[str, object]) -> dict[str, object]:
    """The sidecar without its boxes and targets; instructions stay."""
    queries = fields.get("queries")
    if not isinstance(queries, list):
        return {**fields, "elements": []}
    kept = [
        {key: value for key, value in query.items() if key not in _TRUTH}
        if isinstance(query, dict)
        else query
        for query in queries
    ]
    return {**fields, "elements": [], "queries": kept}


def _stated(fields: dict[str, object]) -> Iterator[Corners]:
    for entry in entries(fields):
        for value in (stated_box(entry), *other_boxes(entry)):
            box = numbers(value)
            if box is not None:
                yield box


def _viewport_width(fields: dict[str, object]) -> float | None:
    """Width of the viewport in CSS pixels, from `viewport_css` or `viewport`: `[W, H]`."""
    for key in ("viewport_css", "viewport"):
        sides = fields.get(key)
        if isinstance(sides, list) and len(sides) == 2 and is_number(sides[0]) and sides[0] > 0:
            return float(sides[0])
    return None


def _ratio_of_viewport(fields: dict[str, object], size: Size | None) -> float | None:
    width = _viewport_width(fields)
    return size.width / width if size is not None and width else None


def _contradicted_ratio(fields: dict[str, object], size: Size | None) -> str:
    """Two statements about the width of the image that cannot both be true, or nothing."""
    ratio, width = device_pixel_ratio(fields), _viewport_width(fields)
    if size is None or ratio is None or width is None:
        return ""
    if abs(ratio * width - size.width) <= _SLACK * size.width:
        return ""
    return (
        f"the image is {size.width} px wide, but a viewport of {width:g} CSS px at a pixel ratio "
        f"of {ratio:g} would be {ratio * width:g}: was it saved at another scale? A ratio of "
        f"{size.width / width:g} would fit"
    )
