"""Geometry and its frames: pure functions, one conversion each way.

The frame at rest is **original upright pixels**: the original image after EXIF orientation, origin
at the top left, x to the right, y down, floats. `Point` and `Box` without a frame are always in it.
Numbers in any other frame travel as plain floats next to a `FrameKind` and a `SeenImage`, and only
inside this module's conversions and the parsers that call them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class FrameKind(StrEnum):
    """A coordinate convention; the extent of each frame is given by `frame_extent`."""

    ORIGINAL_PX = "original_px"
    SEEN_PX = "seen_px"
    NORM_1000 = "norm_1000"
    NORM_999 = "norm_999"
    NORM_1 = "norm_1"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of an image in pixels, both at least 1.

    Raises:
        ValueError: if either side is below 1.
    """

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"size must be at least 1x1, got {self.width}x{self.height}")


@dataclass(frozen=True, slots=True)
class Point:
    """A point in original upright pixels."""

    x: float
    y: float

    @property
    def finite(self) -> bool:
        """Whether both coordinates are finite numbers."""
        return math.isfinite(self.x) and math.isfinite(self.y)

    def inside(self, size: Size) -> bool:
        """Whether the point lies on an image of `size` (edges included)."""
        return 0 <= self.x <= size.width and 0 <= self.y <= size.height


@dataclass(frozen=True, slots=True)
class Box:
    """A box `(x1, y1, x2, y2)` in original upright pixels, with `x1 < x2` and `y1 < y2`.

    Raises:
        ValueError: if a coordinate is not finite or the corners are not in order.
    """

    x1: float
    y1: float
    x2: float
    y2: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.x1, self.y1, self.x2, self.y2))):
            raise ValueError(f"box is not finite: {self.corners}")
        if self.x1 >= self.x2 or self.y1 >= self.y2:
            raise ValueError(f"box corners are not in order or the box is empty: {self.corners}")

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """`(x1, y1, x2, y2)` in original pixels."""
        return (self.x1, self.y1, self.x2, self.y2)

    @property
    def center(self) -> Point:
        """The middle of the box."""
        return Point((self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2)

    @property
    def area(self) -> float:
        """Area in square pixels."""
        return (self.x2 - self.x1) * (self.y2 - self.y1)

    def contains(self, point: Point) -> bool:
        """Whether `point` lies in the box, edges included (the field's point-in-box metric)."""
        return self.x1 <= point.x <= self.x2 and self.y1 <= point.y <= self.y2

    def iou(self, other: Box) -> float:
        """Intersection over union with `other`, in 0..1."""
        width = min(self.x2, other.x2) - max(self.x1, other.x1)
        height = min(self.y2, other.y2) - max(self.y1, other.y1)
        if width <= 0 or height <= 0:
            return 0.0
        overlap = width * height
        return overlap / (self.area + other.area - overlap)


@dataclass(frozen=True, slots=True)
class SeenImage:
    """How the image a model sees was made from the original: one affine map per axis.

    `seen = original * scale + offset`, in pixels. Resizing, padding and cropping are all of this
    form, so a chain of them is inverted as a whole.

    Attributes:
        original: size of the original upright image.
        seen: size of the image given to the model.
        scale_x: seen pixels per original pixel along x; `scale_y` likewise along y.
        offset_x: seen x of the original's left edge; `offset_y` likewise of its top edge.
    """

    original: Size
    seen: Size
    scale_x: float = 1.0
    scale_y: float = 1.0
    offset_x: float = 0.0
    offset_y: float = 0.0

    @classmethod
    def unchanged(cls, size: Size) -> SeenImage:
        """The chain of an image that is shown as it is."""
        return cls(original=size, seen=size)

    def resized(self, size: Size) -> SeenImage:
        """This chain followed by a resize of the seen image to `size` (aspect may change)."""
        rx, ry = size.width / self.seen.width, size.height / self.seen.height
        return SeenImage(
            self.original,
            size,
            self.scale_x * rx,
            self.scale_y * ry,
            self.offset_x * rx,
            self.offset_y * ry,
        )

    def placed(self, canvas: Size, left: int, top: int) -> SeenImage:
        """This chain followed by a paste at `(left, top)` of a canvas; negative values crop."""
        return SeenImage(
            self.original,
            canvas,
            self.scale_x,
            self.scale_y,
            self.offset_x + left,
            self.offset_y + top,
        )

    def to_original(self, x: float, y: float) -> Point:
        """Seen pixels to original pixels."""
        return Point((x - self.offset_x) / self.scale_x, (y - self.offset_y) / self.scale_y)

    def to_seen(self, point: Point) -> tuple[float, float]:
        """Original pixels to seen pixels."""
        return (
            point.x * self.scale_x + self.offset_x,
            point.y * self.scale_y + self.offset_y,
        )


_FIXED_EXTENT = {
    FrameKind.NORM_1000: 1000.0,
    FrameKind.NORM_999: 999.0,
    FrameKind.NORM_1: 1.0,
    FrameKind.PERCENT: 100.0,
}


def frame_extent(kind: FrameKind, image: SeenImage) -> tuple[float, float]:
    """Largest x and y of a frame: the far corner of the image it is measured on.

    Args:
        kind: the convention.
        image: the chain that made the seen image.
    """
    if kind in _FIXED_EXTENT:
        return _FIXED_EXTENT[kind], _FIXED_EXTENT[kind]
    size = image.original if kind is FrameKind.ORIGINAL_PX else image.seen
    return float(size.width), float(size.height)


def point_from_frame(x: float, y: float, kind: FrameKind, image: SeenImage) -> Point:
    """A point in frame `kind` to original upright pixels.

    Normalised and percent frames are measured on the seen image, so padding is undone too.
    """
    if kind is FrameKind.ORIGINAL_PX:
        return Point(x, y)
    width, height = frame_extent(kind, image)
    return image.to_original(x / width * image.seen.width, y / height * image.seen.height)


def point_to_frame(point: Point, kind: FrameKind, image: SeenImage) -> tuple[float, float]:
    """A point in original upright pixels to frame `kind`: the inverse of `point_from_frame`."""
    if kind is FrameKind.ORIGINAL_PX:
        return point.x, point.y
    width, height = frame_extent(kind, image)
    x, y = image.to_seen(point)
    return x / image.seen.width * width, y / image.seen.height * height


def clip_point(point: Point, size: Size, tolerance: float) -> Point | None:
    """`point` moved onto the image if it lies within `tolerance` pixels of it, else None."""
    x = min(max(point.x, 0.0), float(size.width))
    y = min(max(point.y, 0.0), float(size.height))
    if abs(x - point.x) > tolerance or abs(y - point.y) > tolerance:
        return None
    return Point(x, y)


def clip_box(box: Box, size: Size) -> Box | None:
    """The part of `box` on an image of `size`, or None where there is none."""
    x1, x2 = (min(max(x, 0.0), float(size.width)) for x in (box.x1, box.x2))
    y1, y2 = (min(max(y, 0.0), float(size.height)) for y in (box.y1, box.y2))
    return Box(x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None
