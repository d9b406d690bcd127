"""Numbers of an answer to places on the original image."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass

from schemas.codes import Role, SampleStatus
from schemas.geometry import Box, FrameKind, Point, SeenImage, Size, point_from_frame
from schemas.records import Item
from transforms.parse.documents import JsonValue

TOLERANCE = 0.02
"""How far outside a coordinate may lie and still be clipped: a share of the image's width (x) or
height (y). Models miss an edge by a few units (1003 of 1000); further out it is another frame."""

MAX_LABEL = 512
"""Longest label kept, in characters."""

_ROUNDING = 1e-6  # original pixels: float error of the conversion, not worth a flag
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_COMMA_NUMBER = re.compile(r"(-?\d{1,15}),(\d{1,15})")
_LIST_IN_TEXT = re.compile(r"[(\[]?([-0-9.,\s]{1,200})[)\]]?")
_COMMA = re.compile(r",\s*+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ROLES = {role.value: role for role in Role}


@dataclass(frozen=True, slots=True)
class RawPlace:
    """What one element of an answer says, in the model's frame, before it is checked.

    Attributes:
        point: two numbers, or None; `box`: four numbers, or None. Both None = no coordinates.
        action: what the model would do there, in the formats that say.
    """

    point: tuple[float, ...] | None
    box: tuple[float, ...] | None
    label: str | None = None
    flags: frozenset[str] = frozenset()
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One element on the original image; `item` is None unless `status` is ok."""

    status: SampleStatus
    item: Item | None
    flags: frozenset[str]


def read_numbers(value: JsonValue, count: int) -> tuple[tuple[float, ...] | None, frozenset[str]]:
    """Exactly `count` numbers of a JSON list, or None; numbers written as text are flagged."""
    if isinstance(value, str):
        return _numbers_in_text(value, count)
    if not isinstance(value, list) or len(value) != count:
        doubled = isinstance(value, list) and len(value) == 2 * count > 4
        return None, frozenset({"ambiguous_decimal"}) if doubled else frozenset()
    flags: frozenset[str] = frozenset()
    numbers = []
    for entry in value:
        number, noticed = read_number(entry)
        if number is None:
            return None, flags | noticed
        numbers.append(number)
        flags |= noticed
    return tuple(numbers), flags


def _numbers_in_text(text: str, count: int) -> tuple[tuple[float, ...] | None, frozenset[str]]:
    """Numbers of a list that was written as text: `"(0.861, 0.036, 0.88, 0.052)"`."""
    listed = _LIST_IN_TEXT.fullmatch(text.strip())
    if listed is None:
        return None, frozenset()
    gaps = _COMMA.findall(listed.group(1))
    if len({gap.strip() == gap for gap in gaps}) > 1:  # "0,53, 0,21": two numbers, or four?
        return None, frozenset({"ambiguous_decimal"})
    parts = [part.strip() for part in listed.group(1).split(",")]
    if len(parts) != count or not all(map(_PLAIN_NUMBER.fullmatch, parts)):
        return None, frozenset()
    return tuple(map(float, parts)), frozenset({"number_as_text"})


def read_number(value: JsonValue) -> tuple[float | None, frozenset[str]]:
    """A number, or a number written as text where only one reading is possible.

    A decimal comma is read (`"0,53"`); three digits after a comma could be thousands, and a text
    with both signs could be either, so these are not.
    """
    if isinstance(value, bool):
        return None, frozenset()
    if isinstance(value, float):
        return value, frozenset()
    if not isinstance(value, str):
        return None, frozenset()
    text = value.strip()
    if _PLAIN_NUMBER.fullmatch(text):
        return float(text), frozenset({"number_as_text"})
    comma = _COMMA_NUMBER.fullmatch(text)
    if comma is None:
        return None, frozenset()
    whole, fraction = comma.groups()
    if len(fraction) == 3 and whole.lstrip("-") != "0":
        return None, frozenset({"ambiguous_decimal"})
    return float(f"{whole}.{fraction}"), frozenset({"number_as_text", "decimal_comma"})


def clean_label(value: JsonValue) -> tuple[str | None, frozenset[str]]:
    """A label as NFC text that every store accepts; what had to change is flagged."""
    if not isinstance(value, str):
        return None, frozenset()
    flags = set()
    text = _SURROGATE.sub("\ufffd", value.replace("\x00", "\ufffd"))
    if text != value:
        flags.add("invalid_unicode")
    elif "\ufffd" in text:
        flags.add("replacement_character")
    if len(text) > MAX_LABEL:
        text = text[:MAX_LABEL]
        flags.add("label_cut")
    text = unicodedata.normalize("NFC", text).strip()
    return text or None, frozenset(flags)


def locate(raw: RawPlace, frame: FrameKind, seen: SeenImage) -> Place:
    """Check and convert one element: frame, corner order, edges, area."""
    if raw.point is None and raw.box is None:
        return Place(SampleStatus.UNPARSEABLE, None, raw.flags | {"no_coordinates"})
    flags = set(raw.flags)
    if raw.point is not None and max(raw.point) < 0:
        # The field's sign for "not there", in a format that has none: no click in the corner.
        return Place(SampleStatus.OUT_OF_FRAME, None, frozenset(flags | {"refusal_like"}))
    if raw.box is not None and _decimal_commas(raw.box):
        flags.add("ambiguous_decimal")
    box: Box | None = None
    if raw.box is not None:
        corners = _corners(raw.box, frame, seen, flags)
        if corners is None:
            return Place(SampleStatus.OUT_OF_FRAME, None, frozenset(flags))
        box = _box(corners)
        if box is None:
            return Place(SampleStatus.DEGENERATE, None, frozenset(flags))
    point = _point(raw.point, box, frame, seen, flags)
    if point is None:
        return Place(SampleStatus.OUT_OF_FRAME, None, frozenset(flags))
    role = _ROLES.get((raw.label or "").casefold())
    label = None if role else raw.label
    item = Item(point=point, box=box, label=label, role=role, action=raw.action)
    return Place(SampleStatus.OK, item, frozenset(flags))


def _decimal_commas(box: tuple[float, ...]) -> bool:
    """Whether a box is two decimals below 1 that a comma split: `[0,53, 0,21]`."""
    return box[0] == box[2] == 0 and all(number.is_integer() for number in box)


def _point(
    numbers: tuple[float, ...] | None,
    box: Box | None,
    frame: FrameKind,
    seen: SeenImage,
    flags: set[str],
) -> Point | None:
    if numbers is None:
        if box is None:
            return None
        flags.add("point_from_box")
        return box.center
    point = _onto_image(numbers[0], numbers[1], frame, seen, flags)
    if point is not None and box is not None and not box.contains(point):
        flags.add("point_outside_box")
    return point


def _corners(
    numbers: tuple[float, ...], frame: FrameKind, seen: SeenImage, flags: set[str]
) -> tuple[Point, Point] | None:
    x1, y1, x2, y2 = numbers
    if x1 > x2 or y1 > y2:
        flags.add("corners_swapped")
        x1, x2, y1, y2 = min(x1, x2), max(x1, x2), min(y1, y2), max(y1, y2)
    first = _onto_image(x1, y1, frame, seen, flags)
    second = _onto_image(x2, y2, frame, seen, flags)
    return None if first is None or second is None else (first, second)


def _box(corners: tuple[Point, Point]) -> Box | None:
    first, second = corners
    if first.x >= second.x or first.y >= second.y:
        return None
    return Box(first.x, first.y, second.x, second.y)


def _onto_image(
    x: float, y: float, frame: FrameKind, seen: SeenImage, flags: set[str]
) -> Point | None:
    """A point of the frame on the original image, or None beyond the tolerance."""
    point = point_from_frame(x, y, frame, seen)
    if not point.finite:
        return None
    clipped = _clip(point, seen.original)
    shift_x, shift_y = abs(clipped.x - point.x), abs(clipped.y - point.y)
    width, height = seen.original.width, seen.original.height
    if shift_x > TOLERANCE * width + _ROUNDING or shift_y > TOLERANCE * height + _ROUNDING:
        return None
    if math.hypot(shift_x, shift_y) > _ROUNDING:
        flags.add("clipped")
    return clipped


def _clip(point: Point, size: Size) -> Point:
    return Point(
        min(max(point.x, 0.0), float(size.width)), min(max(point.y, 0.0), float(size.height))
    )
