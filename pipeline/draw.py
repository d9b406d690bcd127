"""Draws points and boxes on a screenshot. Original upright pixels in, a new RGB image out.

Every line is two-tone, a coloured core on a dark and a light edge, so that it is seen on any
colour. Tags are short ASCII texts: the font that comes with Pillow has no accented letters, and a
letter that cannot be drawn is left out of a tag rather than replaced by a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from pipeline.colours import CANDIDATE, TRUTH
from schemas.geometry import Box, Point, Size
from schemas.records import Item

_DARK = (16, 18, 24)
_LIGHT = (255, 255, 255)
_MARKS_PER_SIDE = 330
"""A core line is one pixel wide per this many pixels of the image's shorter side."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing to draw: a box, a point, or both, in original upright pixels.

    Attributes:
        colour: RGB of the core line.
        tag: short text beside it; only printable ASCII is drawn.
        faint: half transparent and thin, for candidates.
    """

    colour: tuple[int, int, int]
    box: Box | None = None
    point: Point | None = None
    tag: str = ""
    faint: bool = False


def draw_answer(
    image: Image.Image,
    items: Sequence[Item],
    colour: tuple[int, int, int],
    *,
    candidates: Sequence[tuple[Point | None, Box | None]] = (),
    truth: Sequence[Box] = (),
) -> Image.Image:
    """Draw what a model answered, the single answers faintly below it, and optionally the truth.

    Args:
        image: the original upright image.
        items: the located things, in original pixels; numbered when there are several.
        colour: RGB of the items, for example of their route.
        candidates: point and box of each single answer.
        truth: true boxes.
    """
    marks = [Mark(CANDIDATE, box, point, faint=True) for point, box in candidates]
    marks += [Mark(TRUTH, box, tag="truth" if i == 0 else "") for i, box in enumerate(truth)]
    for number, item in enumerate(items, start=1):
        role = item.role.value if item.role is not None else ""
        tag = f"{number} {role}".strip() if len(items) > 1 else role
        marks.append(Mark(colour, item.box, item.point, tag))
    return draw_marks(image, marks)


def draw_marks(image: Image.Image, marks: Sequence[Mark]) -> Image.Image:
    """Draw `marks` in order on a copy of `image`.

    Args:
        image: any mode; its pixel frame is the frame of the marks.
        marks: later ones lie on top; those partly outside are clipped by the image's edge.

    Returns:
        An RGB image of the same size.
    """
    canvas = image.convert("RGB")
    core = max(2, round(min(canvas.size) / _MARKS_PER_SIDE))
    faint = [mark for mark in marks if mark.faint]
    if faint:
        layer = canvas.copy()
        for mark in faint:
            _draw(ImageDraw.Draw(layer), mark, max(1, core // 2))
        canvas = Image.blend(canvas, layer, 0.55)
    pen = ImageDraw.Draw(canvas)
    for mark in marks:
        if not mark.faint:
            _draw(pen, mark, core)
    for mark in marks:
        if mark.tag:
            _tag(pen, mark, core, Size(*canvas.size))
    return canvas


def _draw(pen: ImageDraw.ImageDraw, mark: Mark, core: int) -> None:
    if mark.box is not None:
        _box(pen, mark.box, mark.colour, core)
    if mark.point is not None:
        _point(pen, mark.point, mark.colour, core)


def _box(pen: ImageDraw.ImageDraw, box: Box, colour: tuple[int, int, int], core: int) -> None:
    # Inside out: the core's outer edge is the box itself, so that the inside stays readable.
    edge = max(1, core // 2)
    for grow, width, tone in ((edge, core + 2 * edge, _DARK), (0, core + edge, _LIGHT)):
        pen.rectangle(_pixels(box, grow), outline=tone, width=width)
    pen.rectangle(_pixels(box, 0), outline=colour, width=core)


def _pixels(box: Box, grow: int) -> tuple[int, int, int, int]:
    """The outermost pixels of `box`: pixel i covers [i, i + 1), so the far edge is x2 - 1."""
    left, top = round(box.x1) - grow, round(box.y1) - grow
    right, bottom = round(box.x2) - 1 + grow, round(box.y2) - 1 + grow
    return left, top, max(left, right), max(top, bottom)


def _point(pen: ImageDraw.ImageDraw, point: Point, colour: tuple[int, int, int], core: int) -> None:
    x, y = round(point.x), round(point.y)
    arm = core * 7
    for half, tone in ((core, _DARK), (core // 2, colour)):
        for dx, dy in ((arm, half), (half, arm)):
            pen.rectangle((x - dx, y - dy, x + dx, y + dy), fill=tone)
    radius = core * 3
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour, outline=_DARK)
    pen.ellipse((x - core, y - core, x + core, y + core), fill=_LIGHT, outline=_DARK)


def _tag(pen: ImageDraw.ImageDraw, mark: Mark, core: int, size: Size) -> None:
    text = "".join(c for c in mark.tag if " " <= c <= "~")
    if not text:
        return
    font = ImageFont.load_default(size=core * 6 + 2)
    pad = core + 1
    _, _, width, height = font.getbbox(text, anchor="lt")
    wide, high = int(width) + 2 * pad, int(height) + 2 * pad
    left, top = _tag_corner(mark, core, wide, high, size)
    pen.rectangle((left, top, left + wide, top + high), fill=_DARK)
    pen.rectangle((left, top, left + core, top + high), fill=mark.colour)
    pen.text((left + pad + core // 2, top + pad), text, font=font, fill=_LIGHT, anchor="lt")


def _tag_corner(mark: Mark, core: int, wide: int, high: int, size: Size) -> tuple[int, int]:
    """Above the box where there is room, else below; always on the image."""
    if mark.box is not None:
        left, top = round(mark.box.x1), round(mark.box.y1) - high - core
        if top < 0:
            top = round(mark.box.y2) + core
    elif mark.point is not None:
        left, top = round(mark.point.x) + core * 8, round(mark.point.y) - high // 2
    else:
        left, top = 0, 0
    return max(0, min(left, size.width - wide)), max(0, min(top, size.height - high))
