"""Units that should be there and are not: lost since the last report, or not done yet."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet

from pipeline.dataset import Dataset
from pipeline.report.last_work import REPORT
from pipeline.unit_order import known_order
from pipeline.verify.findings import Verdict
from schemas.errors import DatasetError, StorageError
from transforms.storage import join_uri


def reported_units(dataset: Dataset) -> int:
    """How many units the report of the last run tells of; 0 where there is none that says so.

    To be read before the records: a run that ends in between only adds to these.
    """
    try:
        found = json.loads(dataset.storage.read(join_uri(dataset.uri, REPORT)))
        return int(found["dataset"]["units"])
    except (StorageError, ValueError, KeyError, TypeError):
        return 0


def check_missing(
    dataset: Dataset, committed: AbstractSet[str], reported: int, verdict: Verdict
) -> bool:
    """Compare the records with what the last report and the plans tell.

    Units only ever come to a dataset, so fewer than were reported means that records were lost. A
    unit of a plan without a record may as well be one that no run has come to: that is only told.

    Args:
        dataset: what is verified.
        committed: units that have a record.
        reported: see `reported_units`.
        verdict: is added to.

    Returns:
        Whether it is known that every unit that was ever planned is there.
    """
    if len(committed) < reported:
        detail = f"{len(committed)} units have a record that can be read, {reported} had one"
        verdict.add("lost", join_uri(dataset.uri, REPORT), f"{detail} when this was written")
    try:
        planned = known_order(dataset.uri, dataset.storage)
    except (DatasetError, StorageError) as error:
        verdict.add("order", dataset.uri, str(error))
        return False
    verdict.waiting = len(planned.keys() - committed)
    return planned.keys() == committed
