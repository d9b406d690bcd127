"""How well a convention explains answers, when some of the answers are nonsense.

An answer is either meant (a normal error around its target) or nonsense (anywhere on the screen).
Its log-likelihood under that mixture is bounded on both sides, so that no single answer, however
wild or however lucky, decides alone. Lengths are shares of the screen's diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEANT_SHARE = 0.7
"""Assumed share of answers that are meant."""

WIDE, NARROW = 0.02, 0.005
"""Spread of the meant answers around the middle of a target: assumed at first, and the least one
believes afterwards. 0.02 of the diagonal is 44 px on a 1920x1080 screen."""

_NONSENSE_DENSITY = 2.0
"""Of a uniform guess, per squared diagonal: a screen's area is at most half of that square."""

EXACT = 1e9
"""Errors are cut here, so that numbers beyond a float's square stay finite."""


def errors(points: Floats, targets: Floats, diagonals: Floats) -> Floats:
    """Distances to the targets as shares of the diagonal.

    Args:
        points: shape (..., n, 2), original pixels.
        targets: shape (n, 2), original pixels.
        diagonals: shape (n,), pixels.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.clip(points - targets, -EXACT, EXACT)
    return np.asarray(np.hypot(apart[..., 0], apart[..., 1]) / diagonals, dtype=np.float64)


def log_likelihood(distances: Floats, spread: float) -> Floats:
    """Of each answer, under the mixture; same shape as `distances`."""
    scaled = np.minimum(distances / spread, 50.0)
    meant = np.exp(-0.5 * scaled**2) / (2 * np.pi * spread**2)
    mixed = MEANT_SHARE * meant + (1 - MEANT_SHARE) * _NONSENSE_DENSITY
    return np.asarray(np.log(mixed), dtype=np.float64)


def most_of_one_answer(spread: float) -> float:
    """The largest difference one answer can make between two conventions, in nats."""
    best, worst = log_likelihood(np.array([0.0, 1.0]), spread)
    return float(best - worst)


def fitted_spread(distances: Floats) -> float:
    """Spread of the meant answers of the best convention, kept within `NARROW` and `WIDE`."""
    meant = distances[distances <= 3 * WIDE]
    if not meant.size:
        return WIDE
    # The median of a two-dimensional normal error is 1.177 spreads.
    return float(np.clip(np.median(meant) / 1.177, NARROW, WIDE))
