"""Which devices a machine has, and how several workers share them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from schemas.errors import ConfigError

VISIBLE = "CUDA_VISIBLE_DEVICES"
THREADS = "OMP_NUM_THREADS"


def visible_devices(
    environ: Mapping[str, str] = os.environ, folder: Path = Path("/dev")
) -> list[str]:
    """The devices a job may use: what `CUDA_VISIBLE_DEVICES` names, else every NVIDIA device.

    Args:
        environ: where the variable is looked up.
        folder: where device files are.
    """
    named = environ.get(VISIBLE)
    if named is not None:
        return [part.strip() for part in named.split(",") if part.strip()]
    numbers = [re.fullmatch(r"nvidia(\d+)", path.name) for path in folder.glob("nvidia*")]
    return [str(n) for n in sorted(int(match[1]) for match in numbers if match)]


def worker_environments(
    workers: int, devices: Sequence[str], per_worker: int = 1, cores: int | None = None
) -> list[dict[str, str]]:
    """The variables that give each worker devices of its own, or its share of the cores.

    Args:
        workers: how many there are.
        devices: what `visible_devices` found.
        per_worker: devices that one engine spans.
        cores: of the machine, where there is no device.

    Raises:
        ConfigError: if there are fewer devices than the workers need: each loads the whole model.
    """
    if not devices:
        share = max(1, (cores or os.cpu_count() or 1) // workers)
        return [{THREADS: os.environ.get(THREADS, str(share))} for _ in range(workers)]
    if workers * per_worker > len(devices):
        most = len(devices) // per_worker
        raise ConfigError(
            f"--workers {workers}: each loads its own copy of the model on {per_worker} device(s), "
            f"and there are {len(devices)} ({', '.join(devices)}); use at most --workers {most}"
            + ("" if most else ", or a smaller tensor_parallel_size")
        )
    groups = [devices[i * per_worker : (i + 1) * per_worker] for i in range(workers)]
    return [{VISIBLE: ",".join(group)} for group in groups]
