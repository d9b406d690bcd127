"""Shows a run's progress on the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.observer import Observer
from pipeline.plan import Plan
from pipeline.progress import Progress
from schemas.commits import CommitRecord


@dataclass
class Watch(Observer):
    """Passes what a run tells on to `progress`."""

    progress: Progress

    def status(self, text: str) -> None:
        """A step begins."""
        self.progress.status(text)

    def start(self, plan: Plan, done_units: int) -> None:
        """The work is known; a plan that is all done needs no bar."""
        if done_units < len(plan.units):
            self.progress.start(len(plan.units), plan.members, done_units)

    def advance(self, record: CommitRecord) -> None:
        """One more unit is committed."""
        self.progress.advance(record)

    def tick(self, text: str) -> None:
        """The run is alive."""
        self.progress.tick(text)

    def finish(self) -> None:
        """No more units will come."""
        self.progress.finish()
