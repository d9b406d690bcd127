"""How long the engine was busy: the figure that tells a fed GPU from a waiting one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class BusyClock:
    """Measures how long the engine had at least one request, and how long it was being stepped."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._since: float | None = None
        self._total = 0.0
        self._stepped = 0.0

    def start(self) -> None:
        """The engine has work from now on; harmless when it had already."""
        if self._since is None:
            self._since = self._now()

    def stop(self) -> None:
        """The engine has run dry."""
        if self._since is not None:
            self._total += self._now() - self._since
            self._since = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """The engine works, or is waited for; the rest of the busy time is spent around it."""
        began = self._now()
        try:
            yield
        finally:
            self._stepped += self._now() - began

    def take_steps(self) -> float:
        """Seconds inside `step` since the last `take_steps`."""
        seconds, self._stepped = self._stepped, 0.0
        return seconds

    def take(self) -> float:
        """Busy seconds since the last `take`."""
        running = self._since is not None
        self.stop()
        seconds, self._total = self._total, 0.0
        if running:
            self.start()
        return seconds
