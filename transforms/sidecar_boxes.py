"""The boxes of a sidecar: four numbers each, under a declared convention, and their pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from schemas.geometry import Size

BoxFormat: TypeAlias = Literal["xyxy", "xywh"]
BoxFrame: TypeAlias = Literal["px", "css", "unit", "norm_1000", "percent"]
Corners: TypeAlias = tuple[float, float, float, float]

MIN_BOXES = 3
"""Fewer boxes than this prove nothing about a convention."""

RATIO_KEYS = ("device_pixel_ratio", "dpr", "devicePixelRatio")
"""Names under which sidecars state the device pixels a CSS pixel, best first."""

_EXTENT = {"unit": 1.0, "norm_1000": 1000.0, "percent": 100.0}


@dataclass(frozen=True, slots=True)
class BoxConvention:
    """How four numbers are meant.

    Attributes:
        format: `xyxy` = left, top, right, bottom; `xywh` = left, top, width, height.
        frame: `px` = pixels of the upright image; `css` = CSS pixels, the device pixel ratio
            times smaller; `unit`, `percent`, `norm_1000` = shares of the image's sides, of 1, 100
            or 1000.
    """

    format: BoxFormat = "xyxy"
    frame: BoxFrame = "px"

    def __str__(self) -> str:
        return f'{{ format = "{self.format}", frame = "{self.frame}" }}'


@dataclass(frozen=True, slots=True)
class Page:
    """What boxes are measured on.

    Attributes:
        size: upright size of the image, or None where nobody knows it.
        ratio: device pixels a CSS pixel, or None where nobody says.
    """

    size: Size | None
    ratio: float | None = None


def numbers(value: object) -> Corners | None:
    """Four finite numbers of a JSON list, or None."""
    if not isinstance(value, list) or len(value) != 4:
        return None
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in value):
        return None
    try:
        x1, y1, x2, y2 = map(float, value)
    except OverflowError:
        return None
    return (x1, y1, x2, y2) if all(map(math.isfinite, (x1, y1, x2, y2))) else None


def to_pixels(box: Corners, convention: BoxConvention, page: Page) -> Corners | None:
    """Corners in pixels of the upright image; None where the page does not say enough.

    Args:
        box: four numbers as they are stated.
        convention: how they are meant.
        page: what they are measured on.
    """
    scale = _scale(convention.frame, page)
    if scale is None:
        return None
    x1, y1, x2, y2 = box
    if convention.format == "xywh":
        x2, y2 = x1 + x2, y1 + y2
    return x1 * scale[0], y1 * scale[1], x2 * scale[0], y2 * scale[1]


def _scale(frame: BoxFrame, page: Page) -> tuple[float, float] | None:
    """Pixels per number along x and y."""
    if frame == "px":
        return 1.0, 1.0
    if frame == "css":
        return (page.ratio, page.ratio) if page.ratio else None
    if page.size is None:
        return None
    return page.size.width / _EXTENT[frame], page.size.height / _EXTENT[frame]


def convention_of(value: object) -> BoxConvention | None:
    """The convention that a sidecar's `boxes` declares; None where that is no declaration.

    Raises:
        ValueError: if it is an object, but not of a known format and frame.
    """
    if not isinstance(value, dict):
        return None
    form, frame = value.get("format", "xyxy"), value.get("frame", "px")
    if form not in get_args(BoxFormat) or frame not in get_args(BoxFrame):
        raise ValueError(
            f"`boxes` must have a format of {', '.join(get_args(BoxFormat))} and a frame of "
            f"{', '.join(get_args(BoxFrame))}, not {form!r} and {frame!r}"
        )
    return BoxConvention(form, frame)


def convention_of_shard(defaults: Iterable[tuple[str, str]]) -> BoxConvention | None:
    """The convention that a `shard.toml` declares with `box_format` and `box_frame`, or None.

    Raises:
        ValueError: if one of them is not known.
    """
    said = {key.removeprefix("box_"): value for key, value in defaults if key.startswith("box_")}
    return convention_of(said) if said else None


def stated_box(entry: dict[str, object]) -> object:
    """The box of an element or a query: `bbox_px`, else `bbox`."""
    known = entry.get("bbox_px")
    return entry.get("bbox") if known is None else known


def other_boxes(entry: dict[str, object]) -> list[object]:
    """Further boxes where a click is right: `accept_bbox_px`, else `accept_bbox`."""
    found = entry.get("accept_bbox_px") or entry.get("accept_bbox")
    return found if isinstance(found, list) else []


def entries(fields: dict[str, object]) -> Iterator[dict[str, object]]:
    """The elements and queries of a sidecar."""
    for group in (fields.get("elements"), fields.get("queries")):
        for entry in group if isinstance(group, list) else []:
            if isinstance(entry, dict):
                yield entry


def lie_in_corner(boxes: Sequence[Corners], size: Size) -> bool:
    """Whether all boxes lie in the top left quarter: CSS pixels on an image of twice their size."""
    return len(boxes) >= MIN_BOXES and all(
        x2 <= size.width / 2 and y2 <= size.height / 2 for _, _, x2, y2 in boxes
    )
