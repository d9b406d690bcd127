"""From k answers to one consensus with a probability of being right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schemas.codes import QueryKind, SampleStatus
from schemas.records import Parsed
from schemas.scored import Scored, Signals
from transforms.vote import connected_groups, dispersion, footprint, winning_supporters

VOTING_SOURCE = "region-voting-1 (uncalibrated)"
SINGLE_SOURCE = "single-answer (no evidence)"
SINGLE_PROBABILITY = 0.5
"""One answer says nothing about its own certainty, so it is put where nothing is learnt."""

USABLE = frozenset({SampleStatus.OK, SampleStatus.ABSENT})


def score_answers(kind: QueryKind, parsed: Sequence[Parsed]) -> Scored:
    """The consensus of the k answers to one query.

    Grounding answers vote for regions, and the consensus is the answer that agrees best with the
    others of the winning region: one the model gave, not a mean that it never said. "absent" is a
    region of its own, and so is each answer without geometry. Localization is asked once and
    passes through with no evidence of certainty.

    Args:
        kind: what was asked.
        parsed: the k answers, read, at least one.
    """
    if kind is QueryKind.LOCALIZATION or len(parsed) == 1:
        return _single(parsed)
    located = [i for i, answer in enumerate(parsed) if answer.status is SampleStatus.OK]
    absent = sum(answer.status is SampleStatus.ABSENT for answer in parsed)
    if not located and not absent:
        return _unusable(parsed)
    return _voted(parsed, located, absent)


def succession(votes: int, total: int) -> float:
    """Laplace's rule of succession, `(votes + 1) / (total + 2)`: few that agree prove little."""
    return (votes + 1) / (total + 2)


def _single(parsed: Sequence[Parsed]) -> Scored:
    first = parsed[0]
    usable = int(first.status in USABLE)
    return Scored(
        status=first.status,
        items=first.items,
        flags=first.flags,
        candidates=tuple(parsed),
        signals=Signals(float(usable), 0.0, usable, usable, len(parsed)),
        probability=SINGLE_PROBABILITY if usable else 0.0,
        probability_source=SINGLE_SOURCE,
    )


def _unusable(parsed: Sequence[Parsed]) -> Scored:
    """No answer gave a location: the commonest failure speaks for all."""
    ranked = Counter(answer.status for answer in parsed)
    status = min(ranked, key=lambda code: (-ranked[code], code.value))
    flags = {flag for answer in parsed if answer.status is status for flag in answer.flags}
    return Scored(
        status=status,
        items=(),
        flags=tuple(sorted(flags)),
        candidates=tuple(parsed),
        signals=Signals(0.0, 1.0, 0, 0, len(parsed)),
        probability=0.0,
        probability_source=VOTING_SOURCE,
    )


def _voted(parsed: Sequence[Parsed], located: Sequence[int], absent: int) -> Scored:
    boxes = [footprint(parsed[i].items[0].point, parsed[i].items[0].box) for i in located]
    supporters = [located[i] for i in winning_supporters(boxes)] if boxes else []
    votes = len(supporters)
    failed = len(parsed) - len(located) - absent
    masses = connected_groups(boxes) + ([absent] if absent else []) + [1] * failed
    spread = dispersion(masses)
    # On a tie a location is kept: a reviewer can refuse a drawn box faster than draw a missing one.
    if absent > votes:
        chosen, votes = next(p for p in parsed if p.status is SampleStatus.ABSENT), absent
    else:
        chosen = parsed[_medoid(supporters, parsed)]
    return Scored(
        status=chosen.status,
        items=chosen.items[:1],
        flags=chosen.flags,
        candidates=tuple(parsed),
        signals=Signals(
            agreement=votes / len(parsed),
            dispersion=spread,
            regions=len(masses) - failed,
            usable=len(located) + absent,
            total=len(parsed),
        ),
        probability=succession(votes, len(parsed)) * (1 - spread),
        probability_source=VOTING_SOURCE,
    )


def _medoid(supporters: Sequence[int], parsed: Sequence[Parsed]) -> int:
    """The supporter most like the others (summed IoU of footprints); the first among equals."""
    boxes = {i: footprint(parsed[i].items[0].point, parsed[i].items[0].box) for i in supporters}
    return max(supporters, key=lambda i: (sum(boxes[i].iou(b) for b in boxes.values()), -i))
