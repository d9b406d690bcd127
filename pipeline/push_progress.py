"""How far a push is: a bar on a terminal, plain lines at a steady pace everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

LINE_SECONDS = 15.0
"""Least time between two plain lines."""


@dataclass(slots=True)
class PushProgress:
    """`PushWatch` for a person.

    Attributes:
        console: where to write; standard error by default, so that output can be piped.
        clock: monotonic seconds.
    """

    console: Console = field(default_factory=lambda: Console(stderr=True))
    clock: Callable[[], float] = time.monotonic
    _bar: Bar | None = None
    _task: TaskID | None = None
    _total: int = 0
    _done: int = 0
    _spoke: float = 0.0

    def start(self, total: int) -> None:
        """Begin to count."""
        self._total, self._spoke = total, self.clock()
        if self.console.is_terminal:
            columns = (TextColumn("Pushing"), BarColumn(), MofNCompleteColumn())
            self._bar = Bar(*columns, TimeRemainingColumn(), console=self.console)
            self._task = self._bar.add_task("push", total=total)
            self._bar.start()

    def advance(self, count: int) -> None:
        """Count, and say so now and then."""
        self._done += count
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)
        elif self.clock() - self._spoke >= LINE_SECONDS:
            self._spoke = self.clock()
            self.console.print(f"{self._done:,} of {self._total:,} samples", highlight=False)

    def finish(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
