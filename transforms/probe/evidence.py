"""The probe's finding as lines of text: a table of conventions, and the verdict with its margin."""

from __future__ import annotations

from collections.abc import Sequence

from transforms.probe.hypotheses import Hypothesis
from transforms.probe.verdict import Standing, Verdict

_RELATION_WORDS = {
    "best": "best",
    "tied": "same places",
    "open": "not ruled out",
    "worse": "",
}
_HEADINGS = ("convention", "median error", "of diagonal", "on target", "")
_MAX_TEXT = 60


def evidence_table(
    verdict: Verdict, expected: Hypothesis | None = None, rows: int = 12
) -> list[str]:
    """The conventions with their errors, best first, as aligned lines.

    Args:
        verdict: what was measured.
        expected: what the profile says; always shown, and marked.
        rows: conventions shown, apart from `expected`.
    """
    if not verdict.standings:
        return []
    shown = [
        standing
        for rank, standing in enumerate(verdict.standings)
        if rank < rows or standing.hypothesis == expected
    ]
    lines = [_HEADINGS, *(_cells(standing, expected) for standing in shown)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    table = [_aligned(line, widths) for line in lines]
    left_out = len(verdict.standings) - len(shown)
    return [*table, f"({left_out} more do worse)"] if left_out else table


def verdict_line(verdict: Verdict) -> str:
    """The verdict in one sentence, with its margin."""
    read = f"{verdict.read} of {verdict.asked} answers read"
    if verdict.finding == "cannot_tell":
        return f"cannot tell: {verdict.reason} ({read})"
    best, *tied = verdict.candidates
    same = f" (the same places on these screens: {_names(tied)})" if tied else ""
    top = verdict.standings[0]
    following = next((s for s in verdict.standings if s.relation == "worse"), None)
    margin = ""
    if following is not None:
        margin = (
            f"; the next one, {following.hypothesis.name!r}, has a median error of "
            f"{_share(following)}, and the odds against it are {_odds(verdict.margin)}"
        )
    return (
        f"settled: {best.name}{same}, median error {_share(top)} of the diagonal, "
        f"{top.inliers:.0%} on target, {read}{margin}"
    )


def example_lines(texts: Sequence[str], count: int = 3) -> list[str]:
    """A few raw answers, shortened to one line each."""
    return [repr(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…") for text in texts][
        :count
    ]


def _cells(standing: Standing, expected: Hypothesis | None) -> tuple[str, ...]:
    mark = " <- the profile" if standing.hypothesis == expected else ""
    return (
        standing.hypothesis.name,
        _pixels(standing.median_px),
        _share(standing),
        f"{standing.inliers:.0%}",
        _RELATION_WORDS[standing.relation] + mark,
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, last = cells
    middle = (cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join([first.ljust(widths[0]), *middle, last]).rstrip()


def _pixels(value: float) -> str:
    return f"{value:.1f} px" if value < 100_000 else "> 100000 px"


def _share(standing: Standing) -> str:
    return f"{standing.median_share:.2%}" if standing.median_share < 10 else "> 1000%"


def _odds(nats: float) -> str:
    """Natural log of odds as a power of ten."""
    power = round(nats / 2.302585)
    return f"10^{power} to 1"


def _names(hypotheses: Sequence[Hypothesis]) -> str:
    return "; ".join(one.name for one in hypotheses)
