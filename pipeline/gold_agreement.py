"""Do reviewers agree? Pure functions of what two or more of them said of one sample."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from schemas.codes import QueryKind, Verdict
from schemas.geometry import Box, Point, Size

AGREE_IOU = 0.5
"""Two boxes with at least this overlap mean the same element, as in Pascal VOC's detection
criterion (Everingham et al. 2010)."""

AGREE_DISTANCE = 0.02
"""Two points nearer than this share of the longer side mean the same place."""

PLACED = "placed"
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one review says of a sample, in original upright pixels.

    Attributes:
        verdict: code of `Verdict`.
        boxes: of grounding at most the one target; of localization all, by the interface.
        annotation_id: for the list of what needs a third look.
        seconds: lead time, where known.
    """

    reviewer: str
    annotation_id: int
    verdict: str
    point: Point | None
    boxes: tuple[Box, ...]
    seconds: float | None = None

    @property
    def stand(self) -> str:
        """`placed`, `absent`, or the verdict itself where it vouches for nothing."""
        if self.verdict == Verdict.ABSENT:
            return ABSENT
        if self.verdict not in (Verdict.CORRECT, Verdict.CORRECTED):
            return self.verdict
        return PLACED if self.point or self.boxes else ABSENT

    @property
    def place(self) -> Point | None:
        """Where one would click: the point, or the middle of the only box."""
        if self.point is not None:
            return self.point
        return self.boxes[0].center if len(self.boxes) == 1 else None


@dataclass(frozen=True, slots=True)
class PairFigures:
    """How far apart two opinions that both place something are.

    Attributes:
        distance_px: between their points (or middles of boxes); None of many boxes.
        iou: of their boxes; of many the mean over the best matching, unmatched ones as 0.
    """

    distance_px: float | None
    iou: float | None


def disagreement(opinions: Sequence[Opinion], kind: QueryKind, size: Size) -> str:
    """Why these opinions do not agree, in a few words; empty when they do."""
    stands = sorted({opinion.stand for opinion in opinions})
    if len(stands) > 1:
        return "verdicts differ: " + ", ".join(stands)
    if stands != [PLACED]:
        return ""
    for first, second in combinations(opinions, 2):
        if not same_place(first, second, kind, size):
            return _apart(pair_figures(first, second))
    return ""


def same_place(first: Opinion, second: Opinion, kind: QueryKind, size: Size) -> bool:
    """Whether two opinions mean the same element, or of localization the same set of them."""
    if kind is QueryKind.LOCALIZATION:
        matched = _matching(first.boxes, second.boxes)
        whole = len(first.boxes) == len(second.boxes) == len(matched)
        return whole and all(iou >= AGREE_IOU for iou in matched)
    if first.boxes and second.boxes:
        return first.boxes[0].iou(second.boxes[0]) >= AGREE_IOU
    one, other = first.place, second.place
    if one is None or other is None:
        return False
    boxes = first.boxes + second.boxes
    if boxes:
        return boxes[0].contains(one) and boxes[0].contains(other)
    return _distance(one, other) <= AGREE_DISTANCE * max(size.width, size.height)


def pair_figures(first: Opinion, second: Opinion) -> PairFigures:
    """Distance and overlap of two opinions that both place something."""
    one, other = first.place, second.place
    distance = _distance(one, other) if one and other else None
    if not first.boxes or not second.boxes:
        return PairFigures(distance, None)
    total = sum(_matching(first.boxes, second.boxes))
    return PairFigures(distance, total / max(len(first.boxes), len(second.boxes)))


def fleiss_kappa(ratings: Sequence[Sequence[str]]) -> float | None:
    """Agreement beyond chance over samples with two or more ratings each: 1 = full, 0 = chance.

    `kappa = (P - Pe) / (1 - Pe)`: `P` the mean share of agreeing pairs of a sample, `Pe` the sum
    of squared shares of the categories (Fleiss 1971, "Measuring nominal scale agreement among many
    raters"); samples may have different numbers of ratings. Of two it is Scott's pi.

    Returns:
        None where it is not defined: no sample has two, or all ratings are of one category.
    """
    rated = [Counter(sample) for sample in ratings if len(sample) > 1]
    if not rated:
        return None
    shares = [
        sum(n * (n - 1) for n in counts.values()) / (counts.total() * (counts.total() - 1))
        for counts in rated
    ]
    every = sum(rated, Counter())
    chance = sum((n / every.total()) ** 2 for n in every.values())
    if math.isclose(chance, 1.0):
        return None
    return (sum(shares) / len(shares) - chance) / (1 - chance)


def _matching(first: Sequence[Box], second: Sequence[Box]) -> list[float]:
    """IoU of the pairs of the best one-to-one matching (Hungarian method)."""
    if not first or not second:
        return []
    overlap = np.array([[one.iou(other) for other in second] for one in first])
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    return [float(value) for value in overlap[rows, columns]]


def _apart(figures: PairFigures) -> str:
    parts = []
    if figures.iou is not None:
        parts.append(f"IoU {figures.iou:.2f}")
    if figures.distance_px is not None:
        parts.append(f"{figures.distance_px:.0f} px apart")
    return "places differ: " + ", ".join(parts)


def _distance(first: Point, second: Point) -> float:
    return math.hypot(first.x - second.x, first.y - second.y)
