"""Whether the boxes of a sidecar can be what they are declared to be: corners in image pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schemas.geometry import Size
from transforms.sidecar_truth import numbers

MIN_BOXES = 3
"""Fewer boxes than this prove nothing about a format."""

MIN_SHARE = 0.2
"""Share of boxes that end before they begin above which they are taken for another format."""

Corners = tuple[float, float, float, float]


def stated_boxes(fields: dict[str, object]) -> list[Corners]:
    """Every box of a sidecar, of elements and of queries, that is four finite numbers."""
    found = [numbers(box) for box in _boxes(fields)]
    return [box for box in found if box is not None]


def _boxes(fields: dict[str, object]) -> Iterator[object]:
    for group in (fields.get("elements"), fields.get("queries")):
        for entry in group if isinstance(group, list) else []:
            if isinstance(entry, dict):
                yield entry.get("bbox_px")
                others = entry.get("accept_bbox_px")
                yield from others if isinstance(others, list) else []


def looks_like_sizes(boxes: Sequence[Corners]) -> bool:
    """Whether many boxes end before they begin: left, top, width, height in place of corners."""
    inverted = sum(x2 < x1 or y2 < y1 for x1, y1, x2, y2 in boxes)
    return inverted >= MIN_BOXES and inverted >= MIN_SHARE * len(boxes)


def lie_in_corner(boxes: Sequence[Corners], size: Size) -> bool:
    """Whether all boxes lie in the top left quarter: CSS pixels on an image of twice their size."""
    return len(boxes) >= MIN_BOXES and all(
        x2 <= size.width / 2 and y2 <= size.height / 2 for _, _, x2, y2 in boxes
    )


def without_truth(fields: dict[str, object]) -> dict[str, object]:
    """The sidecar without its boxes and targets; instructions stay."""
    queries = fields.get("queries")
    if not isinstance(queries, list):
        return {**fields, "elements": []}
    truth = {"bbox_px", "accept_bbox_px", "target"}
    kept = [
        {key: value for key, value in query.items() if key not in truth}
        if isinstance(query, dict)
        else query
        for query in queries
    ]
    return {**fields, "elements": [], "queries": kept}
