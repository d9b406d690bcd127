"""`report.json`: the figures for programs. Every field is described in the file itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TypeAlias

from pipeline.report.accuracy import Localization, Share
from pipeline.report.figures import RunFigures

REPORT_VERSION = "1.0.0"

_Value: TypeAlias = "str | int | float | bool | list[_Value] | dict[str, _Value] | None"

FIELDS: dict[str, str] = {
    "report_version": "version of this file's layout; the major part changes when a field goes",
    "dataset.uri": "where the dataset lies",
    "dataset.fingerprint": "hash of everything that shapes rows",
    "dataset.schema_version": "version of the Parquet tables",
    "dataset.units": "committed units, the atoms of work",
    "dataset.shards": "shards that the committed units come from",
    "counts.members": "images listed by the plan, and problems it found",
    "counts.screens": "screenshots decoded: members minus members_rejected",
    "counts.members_rejected": "members that became rejects",
    "counts.queries": "questions asked of the screens",
    "counts.samples": "questions that have an answer row: queries minus queries_rejected",
    "counts.queries_rejected": "questions that became rejects",
    "counts.notices": "reject rows that cost neither a member nor a question",
    "counts.annotation_rows": "rows of `annotations`, one per element",
    "counts.prompt_tokens": "tokens of all prompts, images included",
    "counts.output_tokens": "tokens generated over all answers",
    "counts.truth_judged": "samples that could be compared with a sidecar's truth",
    "counts.truth_hits": "of these, how many were right",
    "counts.statuses": "samples by what became of the answer",
    "counts.routes": "samples by where they go next",
    "counts.rejects": "reject rows by reason",
    "counts.balanced": "true: in = out + rejected held for every unit",
    "accuracy.grounding": "point in a true box, or absent where it is absent; all routes",
    "accuracy.by_route": "the same for each route",
    "accuracy.by_shard": "the same for each shard, by its URI",
    "accuracy.localization": "boxes found against true boxes, one to one at IoU 0.5",
    "probability.threshold": "rows at or above it are accepted; null where it is not known",
    "probability.bins": "number of equal bins over 0..1",
    "probability.by_route": "samples in each bin, by route",
    "models": "samples by checkpoint",
    "apps": "screens by application; empty name = unknown",
    "licences": "screens by image licence; empty name = unknown",
    "run.started": "ISO 8601, UTC",
    "run.ended": "ISO 8601, UTC",
    "run.wall_seconds": "from start to end of this run, engine start included",
    "run.engine_busy_seconds": "with at least one request in an engine, summed over workers",
    "run.engine_start_seconds": "until an engine was ready, summed over workers",
    "run.peak_memory_bytes": "largest resident memory of one worker and its children",
    "run.engine": "inference engine; empty when nothing was asked",
    "run.engine_version": "its version",
    "run.model": "checkpoint that was configured",
    "run.workers": "processes that owned an engine",
    "run.units_done": "units committed by this run",
    "run.units_reused": "units that were committed before it and were not computed again",
    "run.screens": "screens of the units done",
    "run.samples": "samples of the units done",
    "run.accepted": "of these, accepted or drawn for audit",
    "run.prompt_tokens": "prompt tokens of the units done",
    "run.output_tokens": "generated tokens of the units done",
    "run.cached_tokens": "prompt tokens the engine did not have to compute again",
    "run.caches": "what its caches of images did, as the engine counts it; null: unknown",
    "run.engine_step_seconds": "inside the engines' steps, summed over workers",
    "run.push": "outcome of the push to Label Studio, null where there was none",
    "speed.screens_per_second": "screens over wall time; null when this run did nothing",
    "speed.samples_per_second": "samples over wall time",
    "speed.output_tokens_per_second": "generated tokens over engine-busy time",
    "speed.total_tokens_per_second": "prompt and generated tokens over engine-busy time",
    "speed.engine_busy_share": "engine-busy time over the time engines were up, 0..1",
    "speed.engine_idle_share": "share of the time engines were up in which no step of one ran",
    "speed.cached_share": "prompt tokens that the prefix cache held, over all, 0..1",
    "speed.processor_hit_share": "images the engine had processed before; null: unknown",
    "speed.encoder_hit_share": "images its vision encoder did not compute; null: unknown",
    "last_work": "the last run that committed a unit: when it ended, its screens, its speed",
    "cost": "null without a configured price; else of this run, at the price of a machine hour",
}
"""Dotted name -> what it means. A test holds it against what is written."""


def report_json(figures: RunFigures) -> str:
    """The figures as indented JSON text, with the meaning of each field under `fields`."""
    return json.dumps(_document(figures), indent=2, ensure_ascii=False) + "\n"


def _document(figures: RunFigures) -> dict[str, _Value]:
    accuracy = figures.accuracy
    bins = max((len(values) for values in figures.histogram.values()), default=0)
    return {
        "report_version": REPORT_VERSION,
        "dataset": {
            "uri": figures.dataset,
            "fingerprint": figures.fingerprint,
            "schema_version": figures.schema_version,
            "units": figures.units,
            "shards": figures.shards,
        },
        "counts": {**asdict(figures.counts), "balanced": figures.counts.balanced},
        "accuracy": {
            "grounding": _share(accuracy.grounding),
            "by_route": {route: _share(value) for route, value in accuracy.by_route.items()},
            "by_shard": {shard: _share(value) for shard, value in accuracy.by_shard.items()},
            "localization": _localization(accuracy.localization),
        },
        "probability": {
            "threshold": figures.threshold,
            "bins": bins,
            "by_route": {k: list(v) for k, v in figures.histogram.items()},
        },
        "models": {**figures.models},
        "apps": {**figures.apps},
        "licences": {**figures.licences},
        "run": asdict(figures.stats),
        "speed": asdict(figures.speeds),
        "last_work": None if figures.last_work is None else asdict(figures.last_work),
        "cost": None if figures.cost is None else asdict(figures.cost),
        "fields": {**FIELDS},
    }


def _share(share: Share) -> dict[str, _Value]:
    interval: list[_Value] = [share.low, share.high]
    return {
        "judged": share.judged,
        "hits": share.hits,
        "share": share.value,
        "interval_95": interval if share.judged else None,
    }


def _localization(found: Localization) -> dict[str, _Value]:
    return {
        "samples": found.samples,
        "boxes_found": found.found,
        "boxes_true": found.true,
        "boxes_matched": found.matched,
        "f1": found.f1,
    }
