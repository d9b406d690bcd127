"""Fit an image on a canvas of fixed size and fill the rest, as Phi-Ground is shown its screens.

As in the evaluation code of microsoft/Phi-Ground: the image is scaled up or down until it touches
the right or the lower edge, the other side rounded down, and pasted at the top left.
"""

from __future__ import annotations

from schemas.geometry import Size
from schemas.resize import CanvasRule


def fitted_size(original: Size, rule: CanvasRule) -> Size:
    """Size of the image on the canvas, in pixels; never below one pixel a side."""
    if original.width * rule.height > rule.width * original.height:
        return Size(rule.width, max(1, rule.width * original.height // original.width))
    return Size(max(1, rule.height * original.width // original.height), rule.height)
