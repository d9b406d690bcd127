"""A dataset checked against itself; no model and, unless asked, no shard is touched."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from pipeline.clean import UNIT_TABLES, unnamed_parts
from pipeline.dataset import Dataset
from pipeline.rows import screen_rows
from pipeline.verify.asked import asked_as
from pipeline.verify.findings import Verdict
from pipeline.verify.gold import check_gold
from pipeline.verify.ids import Unique
from pipeline.verify.missing import check_missing, reported_units
from pipeline.verify.parts import checked_part
from pipeline.verify.places import Places
from pipeline.verify.records import checked_head, checked_records
from pipeline.verify.reviews import check_reviews
from pipeline.verify.rows import check_rows
from schemas.commits import CommitRecord
from schemas.errors import DatasetError, StorageError

Told = Callable[[int, int], None]
"""Told how many units are done, and of how many."""


def verify_dataset(dataset: Dataset, *, shards: bool = False, told: Told | None = None) -> Verdict:
    """Check records, parts, schema, counts, ids and geometry of a dataset.

    One unit is held in memory at a time, and 40 bytes of each sample and screen.

    Args:
        dataset: freshly opened.
        shards: read every screenshot again from its shard and compare its hash.
        told: told about progress.

    Raises:
        StorageError: if the store cannot even be listed.
    """
    verdict, reported = Verdict(dataset.uri), reported_units(dataset)
    head = checked_head(dataset.storage, dataset.uri, verdict)
    records = checked_records(dataset.storage, dataset.uri, head, verdict)
    said, samples, places = asked_as(head), Unique(), Places()
    unread = 0
    for number, record in enumerate(records):
        tables = _tables(dataset, record, verdict)
        verdict.units += 1
        unread += tables is None
        if tables is not None:
            check_rows(record, tables, said, verdict)
            samples.add(record.unit_id, tables["annotations"]["sample_id"].unique().to_pylist())
            places.add(record, tables)
            if shards:
                _read_again(dataset, tables["screens"], verdict)
        if told is not None:
            told(number + 1, len(records))
    _tell_doubled(samples.doubled(), "sample", verdict)
    _tell_doubled(places.doubled(), "shard member", verdict)
    planned = check_missing(dataset, {record.unit_id for record in records}, reported, verdict)
    if planned and not unread:
        _tell_nowhere(places, verdict)
    check_reviews(dataset, verdict)
    check_gold(dataset, None if unread else samples, verdict)
    named = {part.path for record in records for part in record.parts}
    verdict.leftovers = sum(1 for _ in unnamed_parts(dataset, named))
    return verdict


def _tables(dataset: Dataset, record: CommitRecord, verdict: Verdict) -> dict[str, pa.Table] | None:
    """The three tables of a unit, or None where one of them cannot be checked further."""
    tables = {}
    for part in record.parts:
        table = checked_part(dataset.storage, dataset.uri, part, verdict)
        if table is not None:
            tables[part.table] = table
            verdict.rows[part.table] = verdict.rows.get(part.table, 0) + table.num_rows
    return tables if tables.keys() == set(UNIT_TABLES) else None


def _tell_doubled(doubled: list[tuple[int, list[str]]], what: str, verdict: Verdict) -> None:
    for count, units in doubled:
        verdict.add("doubled", f"units {', '.join(units)}", f"{count} times the same {what}")


def _tell_nowhere(places: Places, verdict: Verdict) -> None:
    """While units are waiting, the first copy of a picture may be in one of them."""
    for unit_id, first in places.nowhere():
        detail = f"screens: duplicate_of names {first}, which is neither a screen nor a reject"
        verdict.add("rows", f"unit {unit_id}", detail)


def _read_again(dataset: Dataset, screens: pa.Table, verdict: Verdict) -> None:
    for screen in screen_rows(screens):
        verdict.screens_read += 1
        try:
            dataset.pixels_of(screen)
        except (DatasetError, StorageError) as error:
            verdict.add("shard", f"{screen.shard}#{screen.member}", str(error))
