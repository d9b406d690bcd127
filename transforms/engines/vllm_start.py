"""Start `vllm.LLM`, and say what to change when it does not start."""

from __future__ import annotations

import dataclasses
import difflib
import warnings
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, EngineError
from transforms.engines.vllm_settings import VllmSettings, is_cpu_build

if TYPE_CHECKING:
    from vllm import LLM


def load_llm(settings: VllmSettings) -> LLM:
    """The loaded model.

    Raises:
        ConfigError: if an engine argument is unknown or refused.
        EngineError: if the checkpoint cannot be loaded or memory is short.
    """
    from vllm import LLM
    from vllm.exceptions import VLLMError

    _check_arguments(settings)
    if is_cpu_build():
        keep_seeds_on_cpu()
    arguments = dict(settings.engine)
    if not settings.is_local:
        arguments["revision"] = settings.revision
    try:
        with warnings.catch_warnings():
            # vLLM walks over deprecated names of PyTorch; nothing a user could act on.
            warnings.simplefilter("default" if settings.verbose else "ignore", FutureWarning)
            return LLM(model=settings.model, seed=settings.seed, **arguments)
    except (VLLMError, ValueError, TypeError, OSError, RuntimeError, AssertionError) as error:
        release_memory()
        raise _start_error(settings, error) from error


def _check_arguments(settings: VllmSettings) -> None:
    from vllm.engine.arg_utils import EngineArgs

    known = {entry.name for entry in dataclasses.fields(EngineArgs)} - {"model", "seed"}
    for name in settings.engine:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise ConfigError(
                f"model.engine.{name} is not an engine argument of this vLLM; did you mean "
                f"model.engine.{near[0]}?"
            )


def _start_error(settings: VllmSettings, error: Exception) -> ConfigError | EngineError:
    """What stopped the start, with what to change."""
    said = " ".join(str(error).split())[:600]
    lower = said.lower()
    if "memory" in lower:
        return EngineError(
            f"not enough memory to start {settings.model!r}: {said}. Lower "
            "model.engine.max_model_len, max_num_seqs or kv_cache_memory_bytes, raise "
            "gpu_memory_utilization, or choose a smaller checkpoint"
        )
    if isinstance(error, OSError):
        return EngineError(
            f"cannot load checkpoint {settings.model!r} at revision {settings.revision!r}: {said}. "
            "Give a folder with the checkpoint in model.checkpoint, or a reachable model id"
        )
    if isinstance(error, RuntimeError | AssertionError):
        return EngineError(f"vLLM could not start {settings.model!r}: {said}")
    return ConfigError(
        f"vLLM refuses the settings of {settings.model!r}: {said}. "
        "Check model.checkpoint and the [model.engine] table"
    )


def release_memory() -> None:
    """Drop what a failed or closed engine left in this process."""
    from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

    cleanup_dist_env_and_memory()


def keep_seeds_on_cpu() -> None:
    """Keep vLLM 0.32 alive on a CPU when a prompt of a seeded request is computed in pieces.

    After each piece but the last, `GPUModelRunner._bookkeeping_sync` turns the request's random
    generator back by one draw. PyTorch's CPU generator cannot be turned back: it raises, and the
    whole engine dies. Here those generators are out of sight during that call. The draws of the
    last piece then depend on how many pieces there were, as they depend on the batch anyway.
    """
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    original = GPUModelRunner._bookkeeping_sync
    if getattr(original, "keeps_seeds", False):
        return

    def bookkeeping(runner: Any, *args: Any, **kwargs: Any) -> Any:
        batch = runner.input_batch
        unfinished = runner.discard_request_mask.np[: batch.num_reqs].nonzero()[0]
        generators = batch.generators
        hidden = {int(i): generators.pop(int(i)) for i in unfinished if int(i) in generators}
        try:
            return original(runner, *args, **kwargs)
        finally:
            generators.update(hidden)

    bookkeeping.keeps_seeds = True  # type: ignore[attr-defined]  # marks the patch as applied
    GPUModelRunner._bookkeeping_sync = bookkeeping
