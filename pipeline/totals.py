"""Adds up the counts of units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields

from schemas.commits import CommitRecord, UnitCounts
from schemas.errors import CountMismatchError


def total_counts(records: Iterable[CommitRecord]) -> UnitCounts:
    """The counts of all `records`, added up field by field.

    Raises:
        CountMismatchError: naming the first unit whose own counts do not add up.
    """
    numbers: Counter[str] = Counter()
    tallies: dict[str, Counter[str]] = {}
    for record in records:
        if not record.counts.balanced:
            raise CountMismatchError(
                f"unit {record.unit_id} of {record.shard}: counts do not add up: {record.counts}"
            )
        for entry in fields(UnitCounts):
            value = getattr(record.counts, entry.name)
            if isinstance(value, int):
                numbers[entry.name] += value
            else:
                tallies.setdefault(entry.name, Counter()).update(value)
    ordered = {name: dict(sorted(tally.items())) for name, tally in tallies.items()}
    return UnitCounts(**numbers, **ordered)  # type: ignore[arg-type]  # ints and tallies by name
