"""True boxes under which nothing is drawn: from a page's tree, not from what a person sees."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from PIL import Image

from schemas.codes import QueryKind
from schemas.geometry import Box
from schemas.records import Query, Truth

MARGIN = 3
"""Pixels around a box that are looked at too: a filled button has one colour, and an edge."""


def is_blank(image: Image.Image, box: Box) -> bool:
    """Whether a box and `MARGIN` pixels around it have one and the same colour.

    Args:
        image: upright RGB image, in whose pixels the box is.
        box: within the image.
    """
    left, top = math.floor(box.x1) - MARGIN, math.floor(box.y1) - MARGIN
    right, bottom = math.ceil(box.x2) + MARGIN, math.ceil(box.y2) + MARGIN
    region = image.crop(
        (max(left, 0), max(top, 0), min(right, image.width), min(bottom, image.height))
    )
    return all(low == high for low, high in (band.getextrema() for band in region.split()))


def without_blank_truth(
    queries: Iterable[Query], image: Image.Image
) -> tuple[tuple[Query, ...], bool]:
    """The queries without true boxes on blank places, and whether there were any.

    A target that cannot be seen is no truth: the query is asked, and not judged.
    """
    found = [(query, _seen(query, image)) for query in queries]
    changed = tuple(dataclasses.replace(query, truth=truth) for query, truth in found)
    return changed, any(truth != query.truth for query, truth in found)


def _seen(query: Query, image: Image.Image) -> Truth | None:
    truth = query.truth
    if truth is None or not truth.boxes:
        return truth
    kept = tuple(true for true in truth.boxes if not is_blank(image, true.box))
    # The first box of a grounding query is its target; of a list, every box is one of many.
    if not kept or (query.kind is QueryKind.GROUNDING and kept[0] is not truth.boxes[0]):
        return None
    return dataclasses.replace(truth, boxes=kept)
