"""True boxes in a sidecar: elements and the targets of queries."""

from __future__ import annotations

from schemas.geometry import Box
from schemas.records import Truth, TruthBox
from transforms.sidecar_boxes import (
    BoxConvention,
    Page,
    numbers,
    other_boxes,
    stated_box,
    to_pixels,
)
from transforms.source_text import composed


class TruthReader:
    """Reads boxes against one image, collecting what had to be dropped or clipped.

    Args:
        elements: the sidecar's `elements`, whatever was found there.
        page: the image, and the pixel ratio, that boxes are measured on.
        convention: how boxes are meant.

    Attributes:
        flags: `truth_dropped` for boxes that are senseless, empty or off the image,
            `truth_clipped` for boxes that reach over its edge.
    """

    def __init__(self, elements: object, page: Page, convention: BoxConvention) -> None:
        self._elements = elements if isinstance(elements, list) else []
        self._page = page
        self._convention = convention
        self.flags: set[str] = set()

    def elements(self) -> tuple[TruthBox, ...]:
        """Every visible element that nothing covers and that has a box on the image."""
        shown = [e for e in self._elements if isinstance(e, dict) and _is_shown(e)]
        boxes = [self._named(e, stated_box(e)) for e in shown if stated_box(e) is not None]
        return tuple(box for box in boxes if box)

    def of_query(self, query: dict[str, object]) -> Truth | None:
        """What the sidecar knows about the target of one query, or None."""
        element = self._target(query)
        bbox = stated_box(query)
        if bbox is None and element is not None:
            bbox = stated_box(element)
        if bbox is None:
            absent = "target" in query and query["target"] is None
            return Truth(present=False) if absent else None
        first = self._named(element or {}, bbox)
        if first is None:
            return None
        found = [self._named({}, other) for other in other_boxes(query)]
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
        stated = numbers(value)
        corners = to_pixels(stated, self._convention, self._page) if stated else None
        if corners is None:
            return None
        x1, y1, x2, y2 = corners
        if size := self._page.size:
            x1, x2 = (min(max(x, 0.0), float(size.width)) for x in (x1, x2))
            y1, y2 = (min(max(y, 0.0), float(size.height)) for y in (y1, y2))
        if x1 >= x2 or y1 >= y2:
            return None
        if (x1, y1, x2, y2) != corners:
            self.flags.add("truth_clipped")
        return Box(x1, y1, x2, y2)


def _is_shown(element: dict[str, object]) -> bool:
    # A null says as little as a missing key: Parquet structs have one for every key of another row.
    return element.get("visible") in (True, None) and element.get("occluded") in (False, None)


def _text(value: object) -> str | None:
    return composed(value) or None if isinstance(value, str) else None
