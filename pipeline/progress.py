"""Progress with the time left on a terminal, plain lines at a steady pace everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from pipeline.report.words import count_words, duration
from schemas.commits import CommitRecord

LINE_SECONDS = 15.0
"""Least time between two plain lines: steady enough to see it live, few enough for a log."""


@dataclass(slots=True)
class Progress:
    """Tells how far a run is. Units that were done before count as done, but not for the speed.

    Attributes:
        console: where to write; standard error by default, so that output can be piped.
        clock: monotonic seconds.
    """

    console: Console = field(default_factory=lambda: Console(stderr=True))
    clock: Callable[[], float] = time.monotonic
    _bar: Bar | None = None
    _task: TaskID | None = None
    _units: int = 0
    _screens: int = 0
    _done_units: int = 0
    _done_screens: int = 0
    _old_screens: int = 0
    _began: float = 0.0
    _spoke: float = 0.0

    def start(
        self, total_units: int, total_screens: int, done_units: int = 0, done_screens: int = 0
    ) -> None:
        """Begin to count.

        Args:
            total_units: of the whole plan.
            total_screens: of the whole plan.
            done_units: of these, committed by earlier runs.
            done_screens: screens of those units; where it is not known (0), their usual share.
        """
        self._units, self._screens = total_units, total_screens
        usual = total_screens * done_units // total_units if total_units else 0
        self._done_units, self._done_screens = done_units, done_screens or usual
        self._old_screens = self._done_screens
        self._began = self._spoke = self.clock()
        if self.console.is_terminal:
            self._bar = _make_bar(self.console)
            self._task = self._bar.add_task(
                "Annotating",
                total=total_screens,
                completed=self._done_screens,
                units=self._of_units(),
            )
            self._bar.start()
            return
        before = f", {done_units:,} of them committed before" if done_units else ""
        units = count_words(total_units, "unit")
        self._say(f"{units}, {count_words(total_screens, 'screen')}{before}")

    def advance(self, record: CommitRecord) -> None:
        """Count one unit that was just committed."""
        self._done_units += 1
        self._done_screens = min(self._screens, self._done_screens + record.counts.members)
        if self._done_units >= self._units:
            self._done_screens = self._screens
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                description="Annotating",
                completed=self._done_screens,
                units=self._of_units(),
            )
        elif self.clock() - self._spoke >= LINE_SECONDS:
            self._spoke = self.clock()
            self._say(self._line())

    def tick(self, text: str) -> None:
        """Say what is being waited for, where nothing else was said for a while.

        A terminal shows time passing by itself. Called from another thread than the rest.
        """
        if self._bar is None and self._began and self.clock() - self._spoke >= LINE_SECONDS:
            self._spoke = self.clock()
            self._say(f"{self._line()}; {text}")

    def status(self, text: str) -> None:
        """Say what is being done, for example `starting vLLM`."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text)
        else:
            self._say(text)

    def finish(self) -> None:
        """Stop counting; harmless when nothing was started, or twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None
        elif self._began:
            self._say(self._line())
        self._began = 0.0

    def _of_units(self) -> str:
        return f"{self._done_units:,}/{self._units:,} units"

    def _line(self) -> str:
        text = f"{self._of_units()}, {self._done_screens:,}/{self._screens:,} screens"
        new = self._done_screens - self._old_screens
        seconds = self.clock() - self._began
        if new <= 0 or seconds <= 0:
            return text
        text += f", {new / seconds:.2f} screens/s"
        left = (self._screens - self._done_screens) * seconds / new
        return f"{text}, about {duration(left)} left" if left > 0 else text

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _make_bar(console: Console) -> Bar:
    return Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("screens, {task.fields[units]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
    )
