"""The exit code of a run that reached its end, and why."""

from __future__ import annotations

import signal as signals

from pipeline.config import LimitsConfig
from pipeline.report.figures import RunFigures
from pipeline.report.stats import RunStats
from schemas.codes import RejectReason

_HARMLESS_QUERIES = frozenset({RejectReason.SAMPLE_DUPLICATE})
"""Rejects that lose nothing: the sample has its row elsewhere."""

_HARMLESS_MEMBERS = frozenset({RejectReason.NEAR_DUPLICATE})
"""Rejects that were asked for: a look-alike of the screen is kept."""


def exit_status(
    figures: RunFigures, stats: RunStats, limits: LimitsConfig, signal: int | None
) -> tuple[int, str]:
    """Exit code and reason: 128 + signal, 1 = too many rejects or pushes pending, 0 = all done.

    Args:
        figures: of the whole dataset.
        stats: of this run.
        limits: what the job tolerates.
        signal: the signal that stopped the run, or None.
    """
    if signal is not None:
        name = signals.Signals(signal).name
        return 128 + signal, f"stopped by {name}; run it again to go on where it stopped"
    share = reject_share(figures)
    if share > limits.max_reject_share:
        return 1, (
            f"{share:.1%} of members or queries were rejected, more than "
            f"limits.max_reject_share = {limits.max_reject_share:.1%}"
        )
    if stats.push is not None and stats.push.pending:
        return 1, f"{stats.push.pending} review rows are not on the server yet"
    return 0, ""


def reject_share(figures: RunFigures) -> float:
    """The larger of the shares of members and of queries that were lost, 0..1."""
    counts = figures.counts
    repeated = sum(counts.rejects.get(reason, 0) for reason in _HARMLESS_QUERIES)
    alike = sum(counts.rejects.get(reason, 0) for reason in _HARMLESS_MEMBERS)
    members = (counts.members_rejected - alike) / counts.members if counts.members else 0.0
    queries = (counts.queries_rejected - repeated) / counts.queries if counts.queries else 0.0
    return max(members, queries)
