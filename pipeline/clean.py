"""Finds and removes what killed runs left in a dataset; nothing that a record names is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pipeline.at_work import at_work, workers
from pipeline.dataset import Dataset
from pipeline.fingerprint import creates_once
from transforms.commit import part_unit
from transforms.storage import ObjectStat, join_uri

UNIT_TABLES = ("annotations", "screens", "rejects")
"""Tables whose parts belong to units; other tables have records of their own."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that nothing refers to.

    Attributes:
        what: `part` of no commit record, `unfinished` write, or `worker` that is dead.
    """

    what: str
    stat: ObjectStat


def leftovers(dataset: Dataset) -> Iterator[Leftover]:
    """What could be removed. While a job is at work, some of it may be what it is writing.

    Raises:
        DatasetError: if the dataset cannot be read: what its records name must be known.
    """
    for stat in _unnamed_parts(dataset):
        yield Leftover("part", stat)
    for stat in dataset.storage.unfinished(dataset.uri):
        yield Leftover("unfinished", stat)
    for uri, worker in workers(dataset).items():
        if worker is None or not worker.alive:
            yield Leftover("worker", ObjectStat(uri, 0))


def clean(dataset: Dataset, told: Callable[[Leftover], None]) -> None:
    """Remove the leftovers, one after the other.

    Args:
        dataset: freshly opened.
        told: called for each that was removed.

    Raises:
        DatasetError: if a job is at work on the dataset, or it cannot be read.
        StorageError: if something cannot be removed.
    """
    with at_work(dataset, "clean"):
        for leftover in leftovers(dataset):
            if leftover.what == "unfinished":
                dataset.storage.discard(leftover.stat)
            else:
                dataset.storage.delete(leftover.stat.uri)
            told(leftover)


def sweep(dataset: Dataset) -> int:
    """Remove parts of committed units that their records do not name; says how many.

    Done at the end of each whole run, so that a plain glob over the Parquet files finds each row
    once. Another job may be at work: what it writes of a unit that is committed already will not
    be committed. Only where the store does not tell a second record from a first one must it wait.

    Args:
        dataset: freshly opened.

    Raises:
        DatasetError, StorageError: if the dataset cannot be read or something not be removed.
    """
    if not creates_once(dataset.storage, dataset.uri):
        return 0
    committed = {record.unit_id for record in dataset.commits()}
    swept = 0
    for stat in _unnamed_parts(dataset):
        if part_unit(stat.uri) in committed:
            dataset.storage.delete(stat.uri)
            swept += 1
    return swept


def unnamed_parts(dataset: Dataset, named: AbstractSet[str]) -> Iterator[ObjectStat]:
    """Parts in the tables of units whose path is not in `named`."""
    skip = len(dataset.uri.rstrip("/")) + 1
    for table in UNIT_TABLES:
        for stat in dataset.storage.list(join_uri(dataset.uri, table)):
            if stat.uri[skip:] not in named:
                yield stat


def _unnamed_parts(dataset: Dataset) -> Iterator[ObjectStat]:
    named = {part.path for record in dataset.commits() for part in record.parts}
    return unnamed_parts(dataset, named)
