"""The tiling of the InternVL and Nemotron-Nano-VL families: a grid of squares, aspect not kept.

As vLLM 0.32 does it (`transformers_utils/processors/internvl.py`, `find_closest_aspect_ratio`,
used by `nano_nemotron_vl.py` too): among all grids of at most `max_tiles` tiles, the one whose
ratio of sides is nearest to the image's; of grids equally near, the larger one as long as the image
has more than half the pixels of that grid. The whole image is stretched onto the grid.
"""

from __future__ import annotations

from functools import lru_cache

from schemas.geometry import Size
from schemas.resize import TileRule


def tiled_size(original: Size, rule: TileRule) -> Size:
    """Size of the grid, in pixels, that the image is stretched onto."""
    columns, rows = grid(original, rule)
    return Size(columns * rule.tile, rows * rule.tile)


def grid(original: Size, rule: TileRule) -> tuple[int, int]:
    """Columns and rows of tiles for an image of size `original`."""
    aspect = original.width / original.height
    area = original.width * original.height
    best, nearest = (1, 1), float("inf")
    for columns, rows in _grids(rule.max_tiles):
        distance = abs(aspect - columns / rows)
        if distance < nearest:
            best, nearest = (columns, rows), distance
        elif distance == nearest and area > 0.5 * rule.tile**2 * columns * rows:
            best = (columns, rows)
    return best


def tile_count(original: Size, rule: TileRule) -> int:
    """Tiles the model gets for an image, the thumbnail included."""
    columns, rows = grid(original, rule)
    tiles = columns * rows
    return tiles + 1 if rule.thumbnail and tiles > 1 else tiles


@lru_cache(maxsize=16)
def _grids(max_tiles: int) -> tuple[tuple[int, int], ...]:
    """All grids, fewest tiles first: of two equally near, the later one has more."""
    grids = {
        (columns, rows)
        for columns in range(1, max_tiles + 1)
        for rows in range(1, max_tiles // columns + 1)
    }
    return tuple(sorted(grids, key=lambda sides: (sides[0] * sides[1], sides)))
