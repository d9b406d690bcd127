"""How often vLLM's caches of images helped, read from vLLM 0.32 itself.

- `renderer.mm_processor_cache` counts its own hits and queries; it lives in this process, wherever
  the model runs. With `mm_processor_cache_gb = 0` there is none, and nothing is known.
- The scheduler keeps no count of its encoder cache, but with `enable_logging_iteration_details` and
  without `disable_log_stats` it tells, after each step, how many images the encoder computes in it
  (`SchedulerStats.iteration_details`). That crosses to this process with the step's outputs, and
  `LLMEngine.step` hands it to its `logger_manager`.
"""

from __future__ import annotations

from typing import Any

from schemas.caches import CacheCounts


class ImageCaches:
    """Counts from the start of a `vllm.LLM` on; `shown` is told of every prompt."""

    def __init__(self, llm: Any) -> None:
        config = llm.llm_engine.vllm_config.observability_config
        manager = llm.llm_engine.logger_manager
        self._processed = llm.renderer.mm_processor_cache
        self._told = manager is not None and config.enable_logging_iteration_details
        self._shown = self._encoded = 0
        if self._told:
            # In the place of vLLM's loggers, which would print a line for each step.
            llm.llm_engine.logger_manager = _Listener(self)

    def shown(self, prompts: int) -> None:
        """So many prompts with an image were queued."""
        self._shown += prompts

    def encoded(self, images: int) -> None:
        """A step computed so many images."""
        self._encoded += images

    def counts(self) -> CacheCounts:
        """Since the start."""
        info = None if self._processed is None else self._processed.make_stats()
        return CacheCounts(
            processor_queries=None if info is None else info.total,
            processor_hits=None if info is None else info.hits,
            encoder_queries=self._shown if self._told else None,
            encoder_runs=self._encoded if self._told else None,
        )


class _Listener:
    """What `LLMEngine` calls of a `StatLoggerManager`."""

    def __init__(self, caches: ImageCaches) -> None:
        self._caches = caches

    def record(self, scheduler_stats: Any, **_: object) -> None:
        """One step is over."""
        details = None if scheduler_stats is None else scheduler_stats.iteration_details
        if details is not None:
            self._caches.encoded(details.num_encoder_inputs)

    def log(self) -> None:
        """Nothing is printed."""

    def record_sleep_state(self, *_: int) -> None:
        """Our engines never sleep."""
