"""Who is told what a run is doing."""

from __future__ import annotations

from pipeline.plan import Plan
from schemas.commits import CommitRecord


class Observer:
    """Told what a run is doing; the command line shows it, tests ignore it."""

    def status(self, text: str) -> None:
        """A step begins."""

    def start(self, plan: Plan, done_units: int) -> None:
        """The work is known: the whole plan, of which `done_units` units are committed."""

    def advance(self, record: CommitRecord) -> None:
        """One more unit is committed."""

    def tick(self, text: str) -> None:
        """The run is alive; `text` says what it is waiting for. Comes from another thread."""

    def finish(self) -> None:
        """No more units will come."""
