"""The largest memory that a benchmark takes, on the host and on the devices, looked at in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pipeline.devices import visible_devices
from pipeline.memory import memory_bytes

PACE = 0.25
"""Seconds between two looks."""


class MemoryPeaks:
    """Watches memory from a thread of its own while it is open.

    Attributes:
        host: largest resident memory of this process and its children, in bytes; pages that they
            share count once for each.
        device: largest memory in use on all visible devices, by whomever; None = there is none, or
            its driver cannot be asked.
    """

    def __init__(self, device_bytes: Callable[[], int] | None = None) -> None:
        self.host = 0
        self.device: int | None = None
        self._device_bytes = device_bytes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pantalla-peaks", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(PACE):
            self._look()

    def _look(self) -> None:
        self.host = max(self.host, memory_bytes())
        if self._device_bytes is not None:
            self.device = max(self.device or 0, self._device_bytes())


def device_meter() -> Callable[[], int] | None:
    """A call that adds up the memory in use on the visible NVIDIA devices; None without any."""
    names = visible_devices()
    if not names:
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(int(name))
            if name.isdecimal()
            else pynvml.nvmlDeviceGetHandleByUUID(name)
            for name in names
        ]
    except pynvml.NVMLError:
        return None
    return lambda: sum(int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in handles)
