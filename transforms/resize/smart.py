"""The "smart resize" of the Qwen2-VL and Qwen3-VL families.

As published in `transformers.models.qwen2_vl.image_processing_qwen2_vl.smart_resize` (read in
5.19): round each side to a multiple of `factor`; when the area leaves the bounds, scale both sides
by the square root of the ratio first, then round down (too large) or up (too small). Rounding
halves is Python's `round`, to even.
"""

from __future__ import annotations

import math

from schemas.codes import RejectReason
from schemas.errors import ConfigError, MemberRejected
from schemas.geometry import Size
from schemas.resize import ResizeRule

MAX_ASPECT = 200.0
"""Beyond this ratio of sides the published rule raises: such an image is refused, not distorted."""

_MAX_ROUNDS = 16
"""Rounds until the rule leaves its own result alone; two or three are usual."""


def smart_size(original: Size, rule: ResizeRule) -> Size:
    """The size the rule gives, applied until it leaves its own result alone.

    One application is not always enough: a long narrow image whose short side is held at `factor`
    can stay above `max_pixels`, and the processor would shrink it once more behind our back.

    Raises:
        MemberRejected: `image_too_narrow` when one side is over 200 times the other.
        ConfigError: if no size is stable, because the bounds are too close together.
    """
    size = original
    for _ in range(_MAX_ROUNDS):
        again = smart_step(size, rule, original)
        if again == size:
            return size
        size = again
    raise ConfigError(
        f"resize rule: no size near {original.width}x{original.height} is a multiple of factor "
        f"{rule.factor} and within {rule.min_pixels}..{rule.max_pixels} pixels; widen the bounds"
    )


def smart_step(size: Size, rule: ResizeRule, original: Size) -> Size:
    """One application of the rule, as the processor does it; `original` is named in errors.

    Raises:
        MemberRejected: `image_too_narrow` when one side is over 200 times the other.
    """
    if max(size.width, size.height) > MAX_ASPECT * min(size.width, size.height):
        raise MemberRejected(RejectReason.IMAGE_TOO_NARROW, _too_narrow(size, rule, original))
    width, height = (round(side / rule.factor) * rule.factor for side in (size.width, size.height))
    area = size.width * size.height
    if width * height > rule.max_pixels:
        shrink = math.sqrt(area / rule.max_pixels)
        return Size(_floor(size.width / shrink, rule), _floor(size.height / shrink, rule))
    if width * height < rule.min_pixels:
        grow = math.sqrt(rule.min_pixels / area)
        return Size(_ceil(size.width * grow, rule), _ceil(size.height * grow, rule))
    return Size(width, height)


def _too_narrow(size: Size, rule: ResizeRule, original: Size) -> str:
    """Which image is refused and what to do: the rule may refuse what it made itself."""
    made = (
        ""
        if size == original
        else f" in steps of {rule.factor} px within its limits it would become "
        f"{size.width}x{size.height}, and"
    )
    return (
        f"aspect ratio: {original.width}x{original.height} is too narrow for this model:{made} its "
        f"processor refuses a side over {MAX_ASPECT:g} times the other; cut the page into parts"
    )


def _floor(side: float, rule: ResizeRule) -> int:
    return max(rule.factor, math.floor(side / rule.factor) * rule.factor)


def _ceil(side: float, rule: ResizeRule) -> int:
    return math.ceil(side / rule.factor) * rule.factor
