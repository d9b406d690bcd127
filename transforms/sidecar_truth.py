"""True boxes in a sidecar: elements and the targets of queries."""

from __future__ import annotations

import math

from schemas.geometry import Box, Size
from schemas.records import Truth, TruthBox
from transforms.source_text import clean


class TruthReader:
    """Reads boxes against one image, collecting what had to be dropped or clipped.

    Args:
        elements: the sidecar's `elements`, whatever was found there.
        size: upright size of the image, or None where nobody knows it.

    Attributes:
        flags: `truth_dropped` for boxes that are senseless, empty or off the image,
            `truth_clipped` for boxes that reach over its edge.
    """

    def __init__(self, elements: object, size: Size | None) -> None:
        self._elements = elements if isinstance(elements, list) else []
        self._size = size
        self.flags: set[str] = set()

    def elements(self) -> tuple[TruthBox, ...]:
        """Every visible element that nothing covers and that has a box on the image."""
        shown = [e for e in self._elements if isinstance(e, dict) and _is_shown(e)]
        boxes = [self._named(e, e.get("bbox_px")) for e in shown if e.get("bbox_px") is not None]
        return tuple(box for box in boxes if box)

    def of_query(self, query: dict[str, object]) -> Truth | None:
        """What the sidecar knows about the target of one query, or None."""
        element = self._target(query)
        bbox = query.get("bbox_px")
        if bbox is None and element is not None:
            bbox = element.get("bbox_px")
        if bbox is None:
            absent = "target" in query and query["target"] is None
            return Truth(present=False) if absent else None
        first = self._named(element or {}, bbox)
        if first is None:
            return None
        others = query.get("accept_bbox_px") or []
        found = [self._named({}, other) for other in others] if isinstance(others, list) else []
        return Truth(present=True, boxes=(first, *(box for box in found if box)))

    def _target(self, query: dict[str, object]) -> dict[str, object] | None:
        target = query.get("target")
        if not isinstance(target, int) or isinstance(target, bool):
            return None
        if not 0 <= target < len(self._elements):
            self.flags.add("truth_dropped")
            return None
        element = self._elements[target]
        return element if isinstance(element, dict) else None

    def _named(self, element: dict[str, object], bbox: object) -> TruthBox | None:
        box = self._box(bbox)
        if box is None:
            self.flags.add("truth_dropped")
            return None
        return TruthBox(box, _text(element.get("role")), _text(element.get("name")))

    def _box(self, value: object) -> Box | None:
        corners = numbers(value)
        if corners is None:
            return None
        x1, y1, x2, y2 = corners
        if self._size:
            x1, x2 = (min(max(x, 0.0), float(self._size.width)) for x in (x1, x2))
            y1, y2 = (min(max(y, 0.0), float(self._size.height)) for y in (y1, y2))
        if x1 >= x2 or y1 >= y2:
            return None
        if (x1, y1, x2, y2) != corners:
            self.flags.add("truth_clipped")
        return Box(x1, y1, x2, y2)


def numbers(value: object) -> tuple[float, float, float, float] | None:
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


def _is_shown(element: dict[str, object]) -> bool:
    return element.get("visible", True) is True and element.get("occluded", False) is False


def _text(value: object) -> str | None:
    return clean(value) or None if isinstance(value, str) else None
