"""What one run spent: the only source of speeds, since a dataset may come from many runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from schemas.caches import CacheCounts
from schemas.codes import Route
from schemas.commits import CommitRecord

_ACCEPTED = (Route.ACCEPT, Route.AUDIT)


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """What became of the review rows at the end of the run.

    Attributes:
        project: address of the Label Studio project, or "" where none was reached.
        tasks_new: tasks added by this run; `tasks_present` were there already.
        pending: review rows that no server has yet.
        note: for a person, for example why nothing was pushed.
    """

    project: str = ""
    tasks_new: int = 0
    tasks_present: int = 0
    pending: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunStats:
    """One run of the job.

    Attributes:
        started: ISO 8601, UTC; `ended` likewise.
        wall_seconds: from start to end, engine start included.
        engine_busy_seconds: with at least one request in an engine, summed over workers.
        engine_step_seconds: inside the engines' steps, summed over workers.
        engine_start_seconds: until an engine was ready, summed over workers.
        peak_memory_bytes: largest resident memory of one worker and its children.
        workers: processes that owned an engine.
        units_done: committed by this run; `units_reused` were committed before it.
        accepted: samples of the units done that went to accept or audit.
        screens, samples, prompt_tokens, output_tokens, cached_tokens: of the units done;
            cached tokens are the prompt tokens the engine did not have to compute again.
        caches: what the engines' caches of images did, as far as all of them told.
    """

    started: str
    ended: str
    wall_seconds: float
    engine_busy_seconds: float = 0.0
    engine_start_seconds: float = 0.0
    peak_memory_bytes: int = 0
    engine: str = ""
    engine_version: str = ""
    model: str = ""
    workers: int = 1
    units_done: int = 0
    units_reused: int = 0
    screens: int = 0
    samples: int = 0
    accepted: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    engine_step_seconds: float = 0.0
    caches: CacheCounts = field(default_factory=CacheCounts)
    push: PushOutcome | None = None


def run_stats(
    records: Sequence[CommitRecord],
    *,
    started: str,
    ended: str,
    wall_seconds: float,
    model: str,
    push: PushOutcome | None = None,
) -> RunStats:
    """Add up what the workers of one run spent.

    Long because it says once, field by field, where each figure comes from.

    Args:
        records: of every unit of the run's plan, the reused ones marked so.
        started: ISO 8601, UTC.
        ended: likewise.
        wall_seconds: of the whole run.
        model: checkpoint that was asked.
        push: outcome of the push, where there was one.
    """
    done = [record for record in records if not record.reused]
    workers = [record.worker for record in done]
    counts = [record.counts for record in done]
    return RunStats(
        started=started,
        ended=ended,
        wall_seconds=wall_seconds,
        engine_busy_seconds=sum(w.engine_busy_seconds for w in workers),
        engine_start_seconds=sum(w.engine_start_seconds for w in workers),
        peak_memory_bytes=max((w.peak_memory_bytes for w in workers), default=0),
        engine=_names(w.engine for w in workers),
        engine_version=_names(w.engine_version for w in workers),
        model=model,
        workers=max(1, len({w.pid for w in workers if w.pid})),
        units_done=len(done),
        units_reused=len(records) - len(done),
        screens=sum(c.screens for c in counts),
        samples=sum(c.samples for c in counts),
        accepted=sum(c.routes.get(route, 0) for c in counts for route in _ACCEPTED),
        prompt_tokens=sum(c.prompt_tokens for c in counts),
        output_tokens=sum(c.output_tokens for c in counts),
        cached_tokens=sum(w.cached_tokens for w in workers),
        engine_step_seconds=sum(w.engine_step_seconds for w in workers),
        caches=_caches(w.caches for w in workers),
        push=push,
    )


def _caches(counts: Iterable[CacheCounts]) -> CacheCounts:
    """All together; unknown where there are none."""
    first, *others = [*counts] or [CacheCounts()]
    return sum(others, first)


def _names(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(filter(None, values))))
