"""Answers against the truth a sidecar holds. Original upright pixels throughout."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import Box
from schemas.records import Query
from schemas.scored import Scored


def truth_hit(query: Query, scored: Scored) -> bool | None:
    """Whether a grounding answer is right, or None where nothing is known to compare with.

    The field's metric: the clicked point lies in the target's box, or in another accepted box;
    a target that is not there must be called absent. Localization is judged by `match_f1`.
    """
    truth = query.truth
    if truth is None or query.kind is not QueryKind.GROUNDING:
        return None
    if not truth.present:
        return scored.status is SampleStatus.ABSENT
    if scored.status is not SampleStatus.OK or scored.items[0].point is None:
        return False
    point = scored.items[0].point
    return any(known.box.contains(point) for known in truth.boxes)


def match_count(found: Sequence[Box], true: Sequence[Box], iou: float = 0.5) -> int:
    """How many found boxes match a true box one to one at `iou` or better, best pairs first."""
    pairs = sorted(
        ((f.iou(t), i, j) for i, f in enumerate(found) for j, t in enumerate(true)), reverse=True
    )
    used_found: set[int] = set()
    used_true: set[int] = set()
    for overlap, i, j in pairs:
        if overlap < iou:
            break
        if i not in used_found and j not in used_true:
            used_found.add(i)
            used_true.add(j)
    return len(used_found)


def match_f1(found: Sequence[Box], true: Sequence[Box], iou: float = 0.5) -> float:
    """F1 of found boxes against true boxes, 0..1; 1 when both are empty."""
    if not found and not true:
        return 1.0
    return 2 * match_count(found, true, iou) / (len(found) + len(true))
