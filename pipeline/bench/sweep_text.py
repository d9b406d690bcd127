"""A sweep as lines for a terminal and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

from pydantic import JsonValue

from pipeline.bench.engine import settings_for
from pipeline.bench.levels import Level
from pipeline.bench.sweep import Sweep
from pipeline.bench.workloads import AGENTS
from pipeline.config import JobConfig
from pipeline.model import resolve_model
from pipeline.report.words import byte_size, percent
from transforms.engines.vllm_gauges import QUIET_STATS

NOTHING = "-"

NOTICEABLE, MUCH = 0.01, 0.5
"""Shares of waiting, and of rendering, from which they are said."""

PUBLISHED = (
    "Published for Holotron-12B on one H100: 8.9k tok/s in and out at concurrency 100. Prompts, "
    "numbers and sizes of images, lengths, precision, flags and caching were not published: "
    "this workload is of the same kind, not the same."
)

_HEADINGS = (
    "in flight", "running", "requests", "tok/s", "out tok/s", "req/s", "p50 s", "p95 s", "p99 s",
    "first p50", "first p95", "cached", "host", "device", "per M tok", "per 1k",
)  # fmt: skip


def sweep_lines(sweep: Sweep) -> Iterator[str]:
    """An aligned table of the levels, then what must be known to read it."""
    lines = [_HEADINGS, *(_cells(level, sweep) for level in sweep.levels)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    for line in lines:
        yield "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
    yield ""
    yield from _notes(sweep)


def _cells(level: Level, sweep: Sweep) -> tuple[str, ...]:
    seen = level.seen
    first = (
        (NOTHING, NOTHING) if level.first_token is None else map("{:.2f}".format, level.first_token)
    )
    return (
        f"{level.in_flight}{'*' if sweep.is_queued(level) else ''}",
        f"{seen.running}",
        f"{level.requests}",
        f"{level.tokens_per_second:,.0f}",
        f"{level.output_tokens_per_second:,.0f}",
        f"{level.requests_per_second:.2f}",
        *(f"{seconds:.2f}" for seconds in level.latency),
        *first,
        f"{level.cached:.0%}",
        byte_size(seen.host_bytes),
        NOTHING if seen.device_bytes is None else byte_size(seen.device_bytes),
        _price(level.cost_per_million),
        _price(level.cost_per_thousand),
    )


def _price(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"


def _notes(sweep: Sweep) -> Iterator[str]:
    if sweep.described:
        yield f"Asked: {sweep.described}."
    last = sweep.levels[-1]
    yield (
        f"A request has {last.prompt_tokens / last.requests:,.0f} tokens in and "
        f"{last.output_tokens / last.requests:,.0f} out, in the mean at {last.in_flight} in flight."
    )
    yield (
        "N requests are in the engine all the time that counts; ramp and drain are not in it. "
        "tok/s: in and out, cached ones too. running: most sequences in one batch."
    )
    yield from _held_back(sweep)
    yield from _fed(sweep)
    if all(level.seen.device_bytes is None for level in sweep.levels):
        yield "No device memory: there is no NVIDIA device, or its driver cannot be asked."
    yield from _price_note(sweep)
    if sweep.workload == AGENTS:
        yield PUBLISHED


def _held_back(sweep: Sweep) -> Iterator[str]:
    """What keeps the engine from running all that it has."""
    if any(sweep.is_queued(level) for level in sweep.levels):
        wanted = max(level.in_flight for level in sweep.levels) * sweep.workload.k
        yield (
            f"* The engine runs {sweep.max_num_seqs} sequences at once, the rest waits in its "
            f"queue: --set model.engine.max_num_seqs={wanted} lets all of them run."
        )
    held = [level.in_flight for level in sweep.levels if sweep.is_starved(level)]
    if held:
        yield (
            f"At {', '.join(map(str, held))} in flight fewer ran in one batch: their prompts wait "
            "for model.engine.max_num_batched_tokens or for key-value cache."
        )
    if any(level.seen.preemptions for level in sweep.levels):
        text = ", ".join(
            f"{level.seen.preemptions} at {level.in_flight}"
            for level in sweep.levels
            if level.seen.preemptions
        )
        yield f"Thrown out for want of key-value cache and computed again: {text}."


def _fed(sweep: Sweep) -> Iterator[str]:
    """What keeps this process from feeding it faster."""
    late = max((level.waited for level in sweep.levels), default=0.0)
    if late > NOTICEABLE:
        yield f"The engine waited for images to be decoded, {percent(late)} of the time at most."
    busy = max((level.submitting for level in sweep.levels), default=0.0)
    if busy > MUCH:
        yield (
            f"Rendering prompts and images, one request at a time outside the model, took "
            f"{percent(busy)} of the time at most: it bounds what this process can feed."
        )


def _price_note(sweep: Sweep) -> Iterator[str]:
    if sweep.price_per_hour is None:
        yield "No costs: set cost.machine_hour, or --price-per-hour."
    else:
        yield (
            f"Costs in {sweep.currency}, at {sweep.price_per_hour:g} an hour: of a million tokens "
            "in and out, and of a thousand samples."
        )


def sweep_json(sweep: Sweep, config: JobConfig) -> JsonValue:
    """Every level, and what it was measured on."""
    model = resolve_model(config.model)
    return {
        "model": model.name,
        "revision": model.revision,
        "engine": dict(settings_for(config, (sweep.workload,), QUIET_STATS).engine),
        "max_num_seqs": sweep.max_num_seqs,
        "workload": asdict(sweep.workload),
        "described": sweep.described,
        "price_per_hour": sweep.price_per_hour,
        "currency": sweep.currency,
        "processors": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "levels": [_level_json(level, sweep) for level in sweep.levels],
    }


def _level_json(level: Level, sweep: Sweep) -> dict[str, JsonValue]:
    return {
        **asdict(level),
        "tokens_per_second": level.tokens_per_second,
        "output_tokens_per_second": level.output_tokens_per_second,
        "requests_per_second": level.requests_per_second,
        "cached": level.cached,
        "queued": sweep.is_queued(level),
    }
