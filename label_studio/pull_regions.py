"""What a reviewer left on a screen: Label Studio's percent back to original upright pixels.

Label Studio stores a rectangle as its top left corner and its sides in percent, turned by
`rotation` degrees around that corner (clockwise, in pixels: on a picture that is not square the
percent of the two axes differ). It stores whatever the browser or the API sent: nothing of it is
believed, what is repaired is flagged, and what cannot be read gives no geometry.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from label_studio.interface import BOX, ELEMENT, INSTRUCTION, POINT, ROLE, SHOWN_ONLY, TEXT, VERDICT
from schemas.codes import Role
from schemas.geometry import Box, Point, Size, clip_box, clip_point
from schemas.reviews import ReviewedBox, ReviewFlag

FULL = 100.0
"""The far edge of the image in Label Studio's percent."""

DECIMALS = 6
"""Pixels are kept to a millionth: the conversion's largest float error was measured at 9e-13."""

MAX_OVERSHOOT = 0.2
"""A box that leaves its image by more than this share of a side is in other units, not dragged."""

ROUNDING_PX = 1e-3
"""What lies less than this outside the image is rounding, and worth no flag."""

_ROLES = {role.value: role for role in Role}
_TEXT = "textarea"


class PulledRegion(BaseModel):
    """One entry of an annotation's `result`, as loosely as the server keeps it."""

    model_config = ConfigDict(frozen=True)

    id: str = ""
    from_name: str = ""
    type: str = ""
    origin: str | None = None
    original_width: float | None = None
    original_height: float | None = None
    image_rotation: float | None = None
    value: dict[str, JsonValue] = {}


@dataclass(frozen=True, slots=True)
class DrawnPoint:
    """A click point in original upright pixels; `origin` as the server names it, or None."""

    point: Point
    origin: str | None


@dataclass(slots=True)
class Drawn:
    """Everything readable of one `result`.

    Attributes:
        boxes: `origin` is empty where the server names none (annotations of the API).
        verdicts: codes chosen; one in a sound review.
        roles: classes chosen for the sample as a whole.
        instruction: corrected instruction, NFC.
        candidates: regions of the other answers: shown, not part of a review.
        foreign: regions of controls, kinds or codes that the interface does not have.
    """

    boxes: list[ReviewedBox] = field(default_factory=list)
    points: list[DrawnPoint] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    instruction: str | None = None
    flags: set[ReviewFlag] = field(default_factory=set)
    candidates: int = 0
    foreign: int = 0


def read_regions(result: Sequence[JsonValue], size: Size) -> Drawn:
    """Read an annotation's `result`; total on any JSON.

    Args:
        result: entries as the server keeps them.
        size: of the original upright image, from our own row: regions carry a size only where a
            browser wrote them, and an empty result carries none.
    """
    drawn = Drawn()
    regions = list(_parsed(result, drawn))
    texts = _region_texts(regions)
    for region in regions:
        _read(region, size, texts, drawn)
    return drawn


def _parsed(result: Iterable[JsonValue], drawn: Drawn) -> Iterable[PulledRegion]:
    for entry in result:
        try:
            yield PulledRegion.model_validate(entry)
        except ValidationError:
            drawn.foreign += 1


def _region_texts(regions: Sequence[PulledRegion]) -> dict[str, str]:
    """Texts written for single boxes, by region id: entries that share the box's id."""
    boxes = {region.id for region in regions if region.from_name == BOX and region.id}
    return {
        region.id: text
        for region in regions
        if region.from_name == TEXT and region.id in boxes and (text := _text(region))
    }


def _read(region: PulledRegion, size: Size, texts: dict[str, str], drawn: Drawn) -> None:
    key = (region.from_name, region.type)
    if key == (BOX, "rectanglelabels"):
        _read_box(region, size, texts, drawn)
    elif key == (POINT, "keypointlabels"):
        _read_point(region, size, drawn)
    elif key == (VERDICT, "choices"):
        drawn.verdicts += _strings(region.value.get("choices"))
    elif key == (ROLE, "choices"):
        drawn.roles += _strings(region.value.get("choices"))
    elif key == (INSTRUCTION, _TEXT):
        drawn.instruction = _text(region) or drawn.instruction
    elif region.from_name in SHOWN_ONLY:
        drawn.candidates += 1
    elif key != (TEXT, _TEXT):
        drawn.foreign += 1


def _read_box(region: PulledRegion, size: Size, texts: dict[str, str], drawn: Drawn) -> None:
    role = _role(_strings(region.value.get("rectanglelabels")), drawn)
    rotation = region.value.get("rotation") or 0.0
    sides = [region.value.get(side) for side in ("x", "y", "width", "height")]
    numbers = _numbers([*sides, rotation])
    if numbers is None:
        drawn.flags.add(ReviewFlag.NOT_FINITE)
        return
    if not _sizes_agree(region, size, drawn):
        return
    box = _hull(*numbers, size=size, drawn=drawn)
    if box is not None:
        text = texts.get(region.id)
        origin = region.origin or ""
        drawn.boxes.append(ReviewedBox(box, role, text, origin, numbers[4], region.id))


def _role(labels: list[str], drawn: Drawn) -> Role | None:
    if not labels:
        drawn.flags.add(ReviewFlag.NO_LABEL)
        return None
    if labels == [ELEMENT]:
        return None
    if len(labels) > 1 or labels[0] not in _ROLES:
        drawn.flags.add(ReviewFlag.UNKNOWN_LABEL)
        return None
    return _ROLES[labels[0]]


def _hull(
    x: float, y: float, width: float, height: float, rotation: float, *, size: Size, drawn: Drawn
) -> Box | None:
    """The upright box around a turned rectangle in percent, cut at the image; None = unusable."""
    left, top = x / FULL * size.width, y / FULL * size.height
    across, down = width / FULL * size.width, height / FULL * size.height
    if across < 0 or down < 0:
        drawn.flags.add(ReviewFlag.FLIPPED)
    turned = rotation % 360 != 0
    if turned:
        drawn.flags.add(ReviewFlag.ROTATED)
    cos, sin = (math.cos(math.radians(rotation)), math.sin(math.radians(rotation)))
    corners = [(0.0, 0.0), (across, 0.0), (across, down), (0.0, down)]
    spots = [(a * cos - b * sin, a * sin + b * cos) if turned else (a, b) for a, b in corners]
    xs = [round(left + a, DECIMALS) for a, _ in spots]
    ys = [round(top + b, DECIMALS) for _, b in spots]
    return _on_image(min(xs), min(ys), max(xs), max(ys), size, drawn)


def _on_image(x1: float, y1: float, x2: float, y2: float, size: Size, drawn: Drawn) -> Box | None:
    over_x, over_y = MAX_OVERSHOOT * size.width, MAX_OVERSHOOT * size.height
    if min(x1 + over_x, y1 + over_y) < 0 or x2 > size.width + over_x or y2 > size.height + over_y:
        drawn.flags.add(ReviewFlag.OUTSIDE_IMAGE)
        return None
    if x1 >= x2 or y1 >= y2:
        drawn.flags.add(ReviewFlag.EMPTY_BOX)
        return None
    whole = Box(x1, y1, x2, y2)
    box = clip_box(whole, size)
    if box is None:
        drawn.flags.add(ReviewFlag.OUTSIDE_IMAGE)
    elif max(abs(a - b) for a, b in zip(box.corners, whole.corners, strict=True)) > ROUNDING_PX:
        drawn.flags.add(ReviewFlag.CLIPPED)
    return box


def _read_point(region: PulledRegion, size: Size, drawn: Drawn) -> None:
    numbers = _numbers([region.value.get("x"), region.value.get("y")])
    if numbers is None:
        drawn.flags.add(ReviewFlag.NOT_FINITE)
        return
    if not _sizes_agree(region, size, drawn):
        return
    point = Point(
        round(numbers[0] / FULL * size.width, DECIMALS),
        round(numbers[1] / FULL * size.height, DECIMALS),
    )
    clipped = clip_point(point, size, MAX_OVERSHOOT * min(size.width, size.height))
    if clipped is None:
        drawn.flags.add(ReviewFlag.OUTSIDE_IMAGE)
        return
    if max(abs(clipped.x - point.x), abs(clipped.y - point.y)) > ROUNDING_PX:
        drawn.flags.add(ReviewFlag.CLIPPED)
    drawn.points.append(DrawnPoint(clipped, region.origin))


def _sizes_agree(region: PulledRegion, size: Size, drawn: Drawn) -> bool:
    """Whether the region was drawn on the image as we know it; a turned picture is not."""
    if region.image_rotation:
        drawn.flags.add(ReviewFlag.IMAGE_ROTATED)
        return False
    shown = (region.original_width, region.original_height)
    if any(shown) and shown != (size.width, size.height):
        drawn.flags.add(ReviewFlag.SIZE_DIFFERS)
    return True


def _numbers(values: Sequence[JsonValue]) -> list[float] | None:
    """The values as finite floats, or None when one is not: a hand-edited field leaves null."""
    numbers = [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]
    return numbers if len(numbers) == len(values) else None


def _strings(value: JsonValue) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _text(region: PulledRegion) -> str:
    lines = _strings(region.value.get("text")) or [str(region.value.get("text") or "")]
    return unicodedata.normalize("NFC", " ".join(line.strip() for line in lines).strip())
