"""Region voting: where do several answers to one question agree?

Consensus as in GUI-RC (arXiv 2508.05615): every answer votes for a region, the region with the
most votes wins. Dispersion as in SafeGround (arXiv 2602.02419): a weighted sum of margin, entropy
and concentration over the regions. All coordinates are original upright pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from schemas.geometry import Box, Point

POINT_SIDE = 50.0
"""Side in px of the square a bare point votes for; the value of GUI-RC."""

MARGIN_WEIGHT, ENTROPY_WEIGHT, CONCENTRATION_WEIGHT = 0.2, 0.2, 0.6
"""Weights of SafeGround's three terms."""


def footprint(point: Point | None, box: Box | None) -> Box:
    """The region one answer votes for: its box, or a square around its point.

    Raises:
        ValueError: if the answer has neither.
    """
    if box is not None:
        return box
    if point is None:
        raise ValueError("an answer without point and box has no footprint")
    half = POINT_SIDE / 2
    return Box(point.x - half, point.y - half, point.x + half, point.y + half)


def winning_supporters(footprints: Sequence[Box]) -> tuple[int, ...]:
    """Which answers cover the most voted region; among equal regions the largest.

    Votes are counted on the grid that the boxes' own edges make, which is exact at any
    resolution and does not grow with the screen.

    Args:
        footprints: at least one box.

    Returns:
        Indices into `footprints`, ascending.
    """
    xs = np.unique([edge for box in footprints for edge in (box.x1, box.x2)])
    ys = np.unique([edge for box in footprints for edge in (box.y1, box.y2)])
    cover = _coverage(footprints, xs, ys)
    votes = cover.sum(axis=0)
    areas = np.outer(np.diff(ys), np.diff(xs))
    labels, count = ndimage.label(votes == votes.max())
    sizes = ndimage.sum_labels(areas, labels, index=np.arange(1, count + 1))
    best = labels == int(np.argmax(sizes)) + 1
    return tuple(int(i) for i in np.flatnonzero((cover & best).any(axis=(1, 2))))


def _coverage(
    footprints: Sequence[Box], xs: NDArray[np.float64], ys: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which box covers which cell: shape (boxes, rows, columns)."""
    cover = np.zeros((len(footprints), len(ys) - 1, len(xs) - 1), dtype=np.bool_)
    for i, box in enumerate(footprints):
        x1, x2 = np.searchsorted(xs, (box.x1, box.x2))
        y1, y2 = np.searchsorted(ys, (box.y1, box.y2))
        cover[i, y1:y2, x1:x2] = True
    return cover


def connected_groups(footprints: Sequence[Box]) -> list[int]:
    """Sizes of the groups of boxes that overlap, directly or through others; largest first."""
    parent = list(range(len(footprints)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    for i, first in enumerate(footprints):
        for j in range(i):
            if first.iou(footprints[j]) > 0:
                parent[root(i)] = root(j)
    sizes: dict[int, int] = {}
    for i in range(len(footprints)):
        sizes[root(i)] = sizes.get(root(i), 0) + 1
    return sorted(sizes.values(), reverse=True)


def dispersion(masses: Sequence[int]) -> float:
    """How scattered votes are over regions, 0 (one region) to 1.

    `0.2 (1 - (p1 - p2)) + 0.2 H / log n + 0.6 (1 - sum p^2)` with p the regions' shares, largest
    first, H their entropy and n the number of votes. The last term is scaled by `n / (n - 1)` so
    that n votes for n regions give exactly 1.

    Args:
        masses: votes per region, each at least 1.
    """
    total = sum(masses)
    if total <= 1:
        return 0.0
    shares = sorted((mass / total for mass in masses), reverse=True)
    margin = 1 - (shares[0] - (shares[1] if len(shares) > 1 else 0.0))
    entropy = -sum(p * math.log(p) for p in shares) / math.log(total)
    concentration = (1 - sum(p * p for p in shares)) * total / (total - 1)
    value = MARGIN_WEIGHT * margin + ENTROPY_WEIGHT * entropy + CONCENTRATION_WEIGHT * concentration
    return min(max(value, 0.0), 1.0)
