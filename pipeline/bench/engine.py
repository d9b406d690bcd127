"""The engine of a benchmark: the job's own, but for what the benchmark cannot do without."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pydantic import JsonValue

from pipeline.bench.agents import PICTURES
from pipeline.bench.workloads import AGENTS, Workload
from pipeline.config import JobConfig
from pipeline.model import resolve_model
from transforms.engines.vllm import VllmEngine, VllmSettings, start_vllm


def engine_for(
    config: JobConfig,
    workloads: Collection[Workload],
    arguments: Mapping[str, JsonValue] | None = None,
) -> VllmEngine:
    """Start the engine of a job for these workloads.

    Raises:
        ConfigError: if the model or an engine argument is refused.
        EngineError: if it does not start.
    """
    return start_vllm(settings_for(config, workloads, arguments))


def settings_for(
    config: JobConfig,
    workloads: Collection[Workload],
    arguments: Mapping[str, JsonValue] | None = None,
) -> VllmSettings:
    """The job's settings; agents raise `limit_mm_per_prompt` to the screens they show.

    Args:
        config: the job.
        workloads: that the engine is for.
        arguments: more engine arguments, over the job's.

    Raises:
        ConfigError: if the model is refused.
    """
    settings = resolve_model(config.model).vllm
    changed = {**settings.engine, **(arguments or {})}
    if AGENTS in workloads:
        known = changed.get("limit_mm_per_prompt")
        limits = known if isinstance(known, dict) else {}
        most = limits.get("image")
        if not isinstance(most, int) or most < PICTURES:
            changed["limit_mm_per_prompt"] = {**limits, "image": PICTURES}
    return replace(settings, engine=changed)
