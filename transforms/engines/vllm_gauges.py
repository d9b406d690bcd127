"""What vLLM counts about itself: only an engine with `disable_log_stats = false` can be asked."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.engines.vllm import VllmEngine

QUIET_STATS = {"disable_log_stats": False, "enable_logging_iteration_details": False}
"""Engine arguments that let vLLM count; its log level decides whether it tells anyone. Without the
second one, which every job sets, `vllm_caches` would be told instead."""


@dataclass(frozen=True, slots=True)
class Load:
    """What an engine is doing.

    Attributes:
        running: sequences in the batch of the last step; the n answers of a request are n.
        preemptions: sequences thrown out of it so far, since the key-value cache was full.
    """

    running: int
    preemptions: int


def engine_load(engine: VllmEngine) -> Load:
    """What the engine did in its last step.

    Raises:
        EngineError: if the engine is dead, closed or another thread's.
    """
    values = dict.fromkeys(("vllm:num_requests_running", "vllm:num_preemptions"), 0.0)
    for metric in engine.llm.get_metrics():
        if metric.name in values:
            values[metric.name] += metric.value
    running, preemptions = values.values()
    return Load(int(running), int(preemptions))
