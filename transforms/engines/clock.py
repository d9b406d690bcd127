"""How long the engine was busy: the figure that tells a fed GPU from a waiting one."""

from __future__ import annotations

import time
from collections.abc import Callable


class BusyClock:
    """Measures how long the engine had at least one request."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._since: float | None = None
        self._total = 0.0

    def start(self) -> None:
        """The engine has work from now on; harmless when it had already."""
        if self._since is None:
            self._since = self._now()

    def stop(self) -> None:
        """The engine has run dry."""
        if self._since is not None:
            self._total += self._now() - self._since
            self._since = None

    def take(self) -> float:
        """Busy seconds since the last `take`."""
        running = self._since is not None
        self.stop()
        seconds, self._total = self._total, 0.0
        if running:
            self.start()
        return seconds
