"""The figures of a run, made once; JSON, text and page only tell them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config import CostConfig
from pipeline.dataset import Dataset
from pipeline.report.accuracy import COLUMNS, Accuracy, AccuracyTally
from pipeline.report.last_work import LastWork, last_work
from pipeline.report.stats import RunStats
from schemas.codes import Route
from schemas.commits import UnitCounts

HISTOGRAM_BINS = 20
_COLUMNS = (*COLUMNS, "probability", "model")


@dataclass(frozen=True, slots=True)
class Speeds:
    """How fast this run was; None where it did nothing.

    Attributes:
        screens_per_second: over the whole wall time, engine start included.
        samples_per_second: likewise.
        output_tokens_per_second: generated tokens over the time an engine was busy.
        total_tokens_per_second: prompt and generated tokens over the same time.
        engine_busy_share: engine-busy time over the time that engines were up, 0..1.
        engine_idle_share: share of the time up in which no step of an engine ran, 0..1.
        cached_share: prompt tokens that the prefix cache held, over all, 0..1.
        processor_hit_share: images that the engine had processed before, over those asked about,
            0..1; None also where the engine does not tell.
        encoder_hit_share: images that its vision encoder did not compute, over those shown in
            prompts, likewise.
    """

    screens_per_second: float | None
    samples_per_second: float | None
    output_tokens_per_second: float | None
    total_tokens_per_second: float | None
    engine_busy_share: float | None
    engine_idle_share: float | None
    cached_share: float | None
    processor_hit_share: float | None
    encoder_hit_share: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What this run cost at the configured price of a machine hour.

    Attributes:
        total: wall time times the price; one machine, whatever its number of workers.
        per_screen: over the screens of this run; `per_accepted` over accepted samples.
    """

    currency: str
    machine_hour: float
    total: float
    per_screen: float | None
    per_accepted: float | None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Everything the report says.

    Attributes:
        counts: of the whole dataset; they are checked to add up before they get here.
        histogram: samples by probability, in equal bins over 0..1, by route.
        models: samples by checkpoint.
        apps: screens by application, "" where unknown.
        licences: screens by image licence, "" where unknown.
        threshold: probability from which rows are accepted; None where it is not known.
        speeds, cost, stats: of this run only.
        last_work: the last run that committed anything, this one or an earlier one.
    """

    dataset: str
    fingerprint: str
    schema_version: str
    units: int
    shards: int
    counts: UnitCounts
    accuracy: Accuracy
    histogram: dict[str, list[int]]
    models: dict[str, int]
    apps: dict[str, int]
    licences: dict[str, int]
    threshold: float | None
    speeds: Speeds
    cost: Cost | None
    stats: RunStats
    last_work: LastWork | None


def make_figures(
    dataset: Dataset,
    stats: RunStats,
    cost: CostConfig | None = None,
    threshold: float | None = None,
) -> RunFigures:
    """Read a dataset once, part by part, and make the figures of its report.

    Long because it names once where each figure comes from.

    Args:
        dataset: what the run left behind.
        stats: what the run spent.
        cost: prices, or none.
        threshold: of acceptance, for the plots.

    Raises:
        DatasetError: if a committed part is missing or damaged.
        CountMismatchError: if the counts of a unit do not add up.
    """
    about = dataset.describe()
    seen = _Seen()
    for _, part in dataset.parts("annotations", _COLUMNS):
        seen.add_samples(part)
    for _, part in dataset.parts("screens", ("app", "licence")):
        seen.add_screens(part)
    return RunFigures(
        dataset=about.uri,
        fingerprint=about.fingerprint,
        schema_version=about.schema_version,
        units=about.units,
        shards=len(about.shards),
        counts=about.counts,
        accuracy=seen.tally.result(),
        histogram=seen.histogram,
        models=dict(sorted(seen.models.items())),
        apps=dict(sorted(seen.apps.items())),
        licences=dict(sorted(seen.licences.items())),
        threshold=threshold,
        speeds=_speeds(stats),
        cost=_cost(stats, cost),
        stats=stats,
        last_work=last_work(dataset, stats),
    )


@dataclass(slots=True)
class _Seen:
    """What one pass over the rows finds, part by part."""

    tally: AccuracyTally = field(default_factory=AccuracyTally)
    histogram: dict[str, list[int]] = field(
        default_factory=lambda: {route.value: [0] * HISTOGRAM_BINS for route in Route}
    )
    models: Counter[str] = field(default_factory=Counter)
    apps: Counter[str] = field(default_factory=Counter)
    licences: Counter[str] = field(default_factory=Counter)

    def add_samples(self, part: pa.Table) -> None:
        """Count a part of `annotations`."""
        self.tally.add(part)
        first = part.filter(pc.equal(part["element_index"], 0))
        self.models.update(first["model"].to_pylist())
        _fill(self.histogram, first)

    def add_screens(self, part: pa.Table) -> None:
        """Count a part of `screens`."""
        self.apps.update(value or "" for value in part["app"].to_pylist())
        self.licences.update(value or "" for value in part["licence"].to_pylist())


def _fill(histogram: dict[str, list[int]], first: pa.Table) -> None:
    routes, values = first["route"].to_pylist(), first["probability"].to_pylist()
    for route, value in zip(routes, values, strict=True):
        bins = histogram.setdefault(route, [0] * HISTOGRAM_BINS)
        bins[min(int(value * HISTOGRAM_BINS), HISTOGRAM_BINS - 1)] += 1


def _speeds(stats: RunStats) -> Speeds:
    up = stats.workers * stats.wall_seconds - stats.engine_start_seconds
    busy, steps = stats.engine_busy_seconds, stats.engine_step_seconds
    total = stats.prompt_tokens + stats.output_tokens
    return Speeds(
        screens_per_second=_ratio(stats.screens, stats.wall_seconds),
        samples_per_second=_ratio(stats.samples, stats.wall_seconds),
        output_tokens_per_second=_ratio(stats.output_tokens, busy),
        total_tokens_per_second=_ratio(total, busy),
        engine_busy_share=min(1.0, busy / up) if up > 0 and busy > 0 else None,
        engine_idle_share=max(0.0, 1 - steps / up) if up > 0 and steps > 0 else None,
        cached_share=stats.cached_tokens / stats.prompt_tokens if stats.prompt_tokens else None,
        processor_hit_share=stats.caches.processor_share,
        encoder_hit_share=stats.caches.encoder_share,
    )


def _ratio(amount: int, seconds: float) -> float | None:
    return amount / seconds if amount and seconds > 0 else None


def _cost(stats: RunStats, cost: CostConfig | None) -> Cost | None:
    if cost is None or cost.machine_hour is None:
        return None
    total = cost.machine_hour * stats.wall_seconds / 3600
    return Cost(
        currency=cost.currency,
        machine_hour=cost.machine_hour,
        total=total,
        per_screen=total / stats.screens if stats.screens else None,
        per_accepted=total / stats.accepted if stats.accepted else None,
    )
