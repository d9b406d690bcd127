"""The counts of one unit, taken from what is about to be written, and their proof."""

from __future__ import annotations

from collections import Counter

from schemas.commits import UnitCounts
from schemas.errors import CountMismatchError
from transforms.work import JudgedUnit


def count_unit(unit: JudgedUnit, annotation_rows: int) -> UnitCounts:
    """Tally a unit and prove that in = out + rejected.

    What goes in is counted where it came in (the plan's members, the screens' queries), what
    comes out where it goes out, so that a lost item cannot hide.

    Raises:
        CountMismatchError: naming the unit and both sides.
    """
    judged = unit.judged
    verdicts = [entry.truth_hit for entry in judged if entry.truth_hit is not None]
    counts = UnitCounts(
        members=len(unit.unit.members) + sum(problem.is_member for problem in unit.unit.problems),
        screens=len(unit.screens),
        members_rejected=sum(entry.is_member for entry in unit.refused),
        queries=sum(len(screen.queries) for screen in unit.screens)
        + sum(entry.is_query and entry.before_screen for entry in unit.refused),
        samples=len(judged),
        queries_rejected=sum(entry.is_query for entry in unit.refused),
        notices=sum(not entry.is_member and not entry.is_query for entry in unit.refused),
        annotation_rows=annotation_rows,
        prompt_tokens=sum(entry.answer.prompt_tokens for entry in judged),
        output_tokens=sum(c.token_count for entry in judged for c in entry.answer.completions),
        truth_judged=len(verdicts),
        truth_hits=sum(verdicts),
        statuses=dict(sorted(Counter(e.scored.status.value for e in judged).items())),
        routes=dict(sorted(Counter(e.route.value for e in judged).items())),
        rejects=dict(sorted(Counter(e.reject.reason.value for e in unit.refused).items())),
    )
    if not counts.balanced:
        raise CountMismatchError(
            f"unit {unit.unit.unit_id} of {unit.unit.shard.uri} lost something: {counts}"
        )
    return counts
