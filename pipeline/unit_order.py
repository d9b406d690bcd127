"""The order of a dataset's units: which of two copies of a picture is the earlier one.

Units of the first plan come in its order; those that a later plan adds come after them. The order
is written down before anything is annotated, so that every process and every later run agrees,
whatever was committed in between.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from schemas.errors import DatasetError
from schemas.records import Unit
from transforms.storage import Storage, join_uri

ORDER = "_order"
"""Folder of the order, a file for each plan that added units; losing it may ask a picture twice."""


def keep_order(units: Sequence[Unit], dataset: str, storage: Storage) -> dict[str, int]:
    """The rank of every unit of a plan, after writing down the units that are new.

    Processes that start at once write the same; where two plans add units at the same time, the
    one that comes second reads what the first wrote, and goes behind it.

    Raises:
        DatasetError: if a file of the order is none.
        StorageError: if it cannot be read or written.
    """
    while True:
        known = known_order(dataset, storage)
        new = [unit.unit_id for unit in units if unit.unit_id not in known]
        if not new:
            return known
        files = sum(1 for _ in storage.list(join_uri(dataset, ORDER) + "/"))
        uri = join_uri(dataset, ORDER, f"{files + 1:06d}.json")
        if storage.create(uri, json.dumps({"units": new}).encode()):
            return known | {unit_id: len(known) + i for i, unit_id in enumerate(new)}


def known_order(dataset: str, storage: Storage) -> dict[str, int]:
    """The rank of every unit that a plan wrote down.

    Raises:
        DatasetError: if a file of the order is none.
        StorageError: if it cannot be read.
    """
    known: dict[str, int] = {}
    for file in storage.list(join_uri(dataset, ORDER) + "/"):
        try:
            listed = json.loads(storage.read(file.uri))["units"]
        except (ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{file.uri}: not a list of units: {error}") from error
        for unit_id in listed:
            known.setdefault(str(unit_id), len(known))
    return known
