"""Memory of this process and its children."""

from __future__ import annotations

import resource

import psutil


def peak_memory_bytes() -> int:
    """Largest resident memory of this process so far plus what its children hold now, in bytes.

    The engine lives in a child process, whose own peak the kernel tells only after its death.
    """
    # ru_maxrss is in KiB on Linux, the only platform this project supports.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return max(psutil.Process().memory_info().rss, peak) + _children_bytes()


def memory_bytes() -> int:
    """Resident memory of this process and its children now, in bytes.

    Pages that they share count once for each.
    """
    own: int = psutil.Process().memory_info().rss
    return own + _children_bytes()


def _children_bytes() -> int:
    total = 0
    for child in psutil.Process().children(recursive=True):
        try:
            total += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def give_memory_back() -> None:
    """Let Arrow take memory from the system's allocator, which gives it back.

    Its own keeps what large indexes and parts once needed: 15 MiB more for a job over 20,000
    screens, as `python -m tests.benchmark.flat_memory` shows.
    """
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
