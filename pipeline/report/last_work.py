"""How fast the last run was that did anything: kept when a later run finds all done."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pipeline.dataset import Dataset
from pipeline.report.stats import RunStats
from schemas.errors import StorageError
from transforms.storage import join_uri

REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class LastWork:
    """The last run into a dataset that committed a unit.

    Attributes:
        ended: ISO 8601, UTC.
        screens: of the units it committed.
        screens_per_second: over its whole wall time, engine start included.
    """

    ended: str
    screens: int
    screens_per_second: float


def last_work(dataset: Dataset, stats: RunStats | None = None) -> LastWork | None:
    """This run, if it did anything, else what the dataset's report remembers.

    Args:
        dataset: with or without a report.
        stats: of the run that is being reported, where there is one.
    """
    if stats is not None and stats.screens and stats.wall_seconds > 0:
        return LastWork(stats.ended, stats.screens, stats.screens / stats.wall_seconds)
    try:
        found = json.loads(dataset.storage.read(join_uri(dataset.uri, REPORT)))["last_work"]
        return LastWork(
            str(found["ended"]), int(found["screens"]), float(found["screens_per_second"])
        )
    except (StorageError, ValueError, KeyError, TypeError):
        return None  # no report yet, or one that another version wrote
