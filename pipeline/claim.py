"""A plan makes a dataset its own, before anything is annotated."""

from __future__ import annotations

from pipeline.dataset import open_root
from pipeline.fingerprint import claim_dataset
from pipeline.plan import Plan
from pipeline.settings import WorkerSettings
from schemas.errors import DatasetError


def claim_plan(plan: Plan, settings: WorkerSettings) -> frozenset[str]:
    """Make the dataset ours, keep the new indexes in it, and say which of its units are done.

    Raises:
        DatasetError: if it was made under other settings, or a shard of the plan was cut into
            other units before: a changed shard is refused, never mixed in.
    """
    claim_dataset(settings.writer.uri, settings.ingredients, settings.writer.s3_endpoint)
    records = open_root(settings.writer.uri, settings.writer.s3_endpoint).commits()
    planned = {unit.unit_id for unit in plan.units}
    shards = {shard.uri for shard in plan.shards}
    stale = sorted({r.shard for r in records if r.shard in shards and r.unit_id not in planned})
    if stale:
        raise DatasetError(
            f"{settings.writer.uri}: these shards have changed since they were annotated: "
            f"{', '.join(stale)}. Put the old shards back, or point output.dataset at a new place"
        )
    plan.keep_indexes()
    return frozenset(record.unit_id for record in records)
