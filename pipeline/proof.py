"""The proof at the end of a run: what was planned is committed, and nothing else is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.dataset import Dataset
from pipeline.plan import Plan
from schemas.commits import CommitRecord
from schemas.errors import CountMismatchError


def planned_records(plan: Plan, dataset: Dataset, done: frozenset[str]) -> list[CommitRecord]:
    """The commit records of the plan's units; those in `done` are marked as reused."""
    planned = {unit.unit_id for unit in plan.units}
    return [
        replace(record, reused=record.unit_id in done)
        for record in dataset.commits()
        if record.unit_id in planned
    ]


def missing_units(plan: Plan, records: Sequence[CommitRecord]) -> int:
    """How many units of the plan have no commit record."""
    found = {record.unit_id for record in records}
    return sum(unit.unit_id not in found for unit in plan.units)


def prove(plan: Plan, records: Sequence[CommitRecord]) -> None:
    """Every unit of the plan is committed, and its members are all accounted for.

    Raises:
        CountMismatchError: naming what is missing.
    """
    found = {record.unit_id: record for record in records}
    for unit in plan.units:
        record = found.get(unit.unit_id)
        if record is None:
            raise CountMismatchError(f"unit {unit.unit_id} of {unit.shard.uri} is not committed")
        expected = len(unit.members) + sum(problem.is_member for problem in unit.problems)
        if record.counts.members != expected or not record.counts.balanced:
            raise CountMismatchError(
                f"unit {unit.unit_id} of {unit.shard.uri}: planned {expected} members, "
                f"committed {record.counts}"
            )
