"""A resize rule in words."""

from __future__ import annotations

from typing import assert_never

from schemas.resize import AnyResizeRule, CanvasRule, ResizeRule, TileRule


def resize_text(rule: AnyResizeRule | None) -> str:
    """What a rule does to an image, in one line."""
    match rule:
        case None:
            return "none: the image is shown as it is"
        case ResizeRule():
            bounds = f"{rule.min_pixels:,} to {rule.max_pixels:,} px"
            return f"sides are multiples of {rule.factor}, {bounds}"
        case TileRule():
            thumbnail = ", then a thumbnail" if rule.thumbnail else ""
            tiles = f"at most {rule.max_tiles} tiles of {rule.tile} px{thumbnail}"
            return f"stretched onto {tiles}; the aspect is not kept"
        case CanvasRule():
            return f"fitted to the top left of a {rule.width}x{rule.height} canvas of {rule.fill}"
        case _:
            assert_never(rule)
