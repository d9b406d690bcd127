"""Start `vllm.LLM`, and say what to change when it does not start."""

from __future__ import annotations

import dataclasses
import difflib
import gc
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from transforms.engines.start_errors import start_error
from transforms.engines.vllm_settings import VllmSettings, is_cpu_build, memory_arguments
from transforms.free_memory import free_memory

if TYPE_CHECKING:
    from vllm import LLM

_START_ERRORS = (ValueError, TypeError, OSError, RuntimeError, AssertionError, MemoryError)

_CPU_COMPLAINTS = ("vllm.triton_utils.importing", "torch.utils.cpp_extension")
"""Loggers that say at every start of the CPU build that there is no GPU."""


def load_llm(settings: VllmSettings) -> LLM:
    """The loaded model.

    Raises:
        ConfigError: if an engine argument is unknown or refused.
        EngineError: if the checkpoint cannot be loaded or memory is short.
    """
    with swift_imports():
        return _load_llm(settings)


@contextmanager
def swift_imports() -> Iterator[None]:
    """Import the seven thousand modules of an engine without garbage collection, compiled once.

    Most of a start on a CPU is these imports. Measured with nano, to nine answers, in CPU seconds:
    52 where each start compiles them anew, 24 where their bytecode is kept, 20.5 with that and
    without collection.
    uv installs without bytecode, and a shell with `PYTHONDONTWRITEBYTECODE`, as in many
    containers, would never keep any. What is imported here is bytecode of installed libraries, as
    pip writes it whatever that variable says; where it cannot be written, nothing happens.
    """
    collecting, unwritten = gc.isenabled(), sys.dont_write_bytecode
    gc.disable()
    sys.dont_write_bytecode = False
    try:
        yield
    finally:
        sys.dont_write_bytecode = unwritten
        if collecting:
            gc.enable()


def _load_llm(settings: VllmSettings) -> LLM:
    if not settings.verbose and is_cpu_build():
        for name in _CPU_COMPLAINTS:
            logging.getLogger(name).setLevel(logging.ERROR)
    from vllm import LLM
    from vllm.exceptions import VLLMError

    _check_arguments(settings)
    if is_cpu_build():
        keep_seeds_on_cpu()
    arguments = {**memory_arguments(settings, free_memory()), **settings.engine}
    if not settings.is_local:
        arguments["revision"] = settings.revision
    try:
        with warnings.catch_warnings():
            # vLLM walks over deprecated names of PyTorch; nothing a user could act on.
            warnings.simplefilter("default" if settings.verbose else "ignore", FutureWarning)
            return LLM(model=settings.model, seed=settings.seed, **arguments)
    except (
        VLLMError,
        ValueError,
        TypeError,
        OSError,
        RuntimeError,
        AssertionError,
        MemoryError,
    ) as error:
        release_memory()
        raise start_error(settings, error) from error


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
