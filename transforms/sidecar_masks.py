"""Parts of a screen that no person may see, as its sidecar states them."""

from __future__ import annotations

from schemas.geometry import Box, clip_box
from transforms.sidecar_boxes import BoxConvention, Page, numbers, to_pixels

MASKS = "masks"
"""Key of a sidecar: a list of boxes; an empty one says that there is nothing to hide."""
UNREADABLE = "masks_unreadable"
"""Flag of a screen whose masks are stated, but not so that they can be drawn."""


def read_masks(
    fields: dict[str, object], page: Page, convention: BoxConvention
) -> tuple[Box, ...] | None:
    """The masks of a sidecar in original upright pixels, cut at the image's edges.

    All or nothing: where one box cannot be read, what it was to hide is unknown, and so the masks
    of the screen are.

    Args:
        fields: the sidecar, with `masks`.
        page: the image they are measured on.
        convention: how the boxes of this sidecar are meant.

    Returns:
        The boxes, or None where any of them is no box on the image.
    """
    stated = fields.get(MASKS)
    if not isinstance(stated, list) or page.size is None:
        return None
    boxes = [_mask(value, page, convention) for value in stated]
    found = tuple(box for box in boxes if box is not None)
    return found if len(found) == len(boxes) else None


def _mask(value: object, page: Page, convention: BoxConvention) -> Box | None:
    given = numbers(value)
    corners = given and to_pixels(given, convention, page)
    if not corners or page.size is None or corners[0] >= corners[2] or corners[1] >= corners[3]:
        return None
    return clip_box(Box(*corners), page.size)
