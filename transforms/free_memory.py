"""How much memory this process may still take: of the machine, and of the group it is held in.

Containers and schedulers (Docker, Kubernetes, Slurm) hold a job in a control group with a limit of
its own, at which the kernel kills it; what the machine reports as available knows nothing of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

_MOUNT = Path("sys/fs/cgroup")


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that are free for this process: of the machine, or of the tightest group above it.

    Args:
        root: where `proc` and `sys` are; another one for tests.
    """
    return max(0, min(psutil.virtual_memory().available, *_left_in_groups(root), _NO_LIMIT))


_NO_LIMIT = 2**62


def _left_in_groups(root: Path) -> Iterator[int]:
    """Bytes left in each control group of this process that has a limit; both versions."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            yield from _left(root / _MOUNT, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            yield from _left(root / _MOUNT / "memory", path, *names)


def _left(mount: Path, path: str, limit: str, used: str, cached: str) -> Iterator[int]:
    """Of a group and of all above it: each may be the tightest.

    In a container, the path is as the host sees it, and the group itself lies at the mount.
    """
    group = mount / path.lstrip("/")
    while True:
        most, now = _number(group / limit), _number(group / used)
        if most is not None and now is not None:
            yield most - now + _cached(group / "memory.stat", cached)
        if group == mount:
            return
        group = group.parent


def _cached(stat: Path, name: str) -> int:
    """Bytes of files that the kernel drops when memory is short, though they count as used."""
    found = (line.split() for line in _lines(stat))
    return next((int(entry[1]) for entry in found if entry[:1] == [name]), 0)


def _number(file: Path) -> int | None:
    text = "".join(_lines(file))
    return int(text) if text.isdigit() else None  # "max" where there is no limit


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")[:-1]
    except OSError:
        return []
