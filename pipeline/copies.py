"""The same picture in two places, found before anything runs and decided by the plan alone."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence

import pyarrow.compute as pc

from pipeline.config import InputConfig, JobConfig
from pipeline.dataset import Dataset, open_root
from pipeline.input_settings import image_settings
from pipeline.plan import Plan
from pipeline.settings import WorkerSettings
from pipeline.unit_order import keep_order
from schemas.codes import QueryKind
from schemas.copies import locator, query_key
from schemas.records import Member, Shard, Unit
from transforms.identity.contents import Content, ReadSettings, candidates, read_contents, without
from transforms.identity.copies import Foreign, NearSettings, mark_copies
from transforms.identity.store import find_contents, keep_contents, shard_state
from transforms.load import LoadSettings, asked_of
from transforms.shards import IndexStore
from transforms.storage import ObjectDeniedError, ObjectMissingError, storage_for

log = logging.getLogger(__name__)


def with_copies(plan: Plan, config: JobConfig, settings: WorkerSettings) -> Plan:
    """The plan, whose members know of which earlier picture they are a copy, or a look-alike.

    Only pictures of one size are read and hashed, and rows of Parquet files, whose size nothing
    says; for look-alikes, all are read and decoded. Hashes are kept beside the dataset.

    Args:
        plan: the whole plan, not a partition of it.
        config: the job; its dataset is ours by now.
        settings: what is asked of each screen.

    Raises:
        StorageError: if a store does not answer.
    """
    root, endpoint = settings.writer.uri, settings.writer.s3_endpoint
    storage = storage_for(root, endpoint)
    order = keep_order(plan.units, root, storage)
    foreign = _foreign(open_root(root, endpoint), {unit.unit_id for unit in plan.units})
    near = _near(config.input)
    sizes = {entry.byte_size for entry in foreign}
    wanted = list(plan.units) if near else candidates(plan.units, sizes)
    if not wanted:
        return plan
    log.info("%d screens may be copies of others", sum(len(unit.members) for unit in wanted))
    contents = _contents(wanted, config.input, IndexStore(root, storage))

    def keys(unit: Unit, member: Member, content: Content) -> Iterable[str]:
        return _keys(unit, member, content, settings.load)

    marked = mark_copies(plan.units, order, contents, keys, foreign, near)
    _tell(marked)
    return dataclasses.replace(plan, units=marked)


def _near(source: InputConfig) -> NearSettings | None:
    mode = source.near_duplicates
    return None if mode == "off" else NearSettings(mode, source.near_distance)


def _keys(unit: Unit, member: Member, content: Content, settings: LoadSettings) -> Iterable[str]:
    asked = asked_of(unit.shard.uri, member.name, content.instructions, settings)
    return {query_key(kind, instruction) for kind, instruction in asked}


def _contents(
    wanted: Sequence[Unit], source: InputConfig, store: IndexStore
) -> dict[str, dict[str, Content]]:
    """Contents by shard and member: the kept ones, and those that are read now and kept."""
    looks = None if source.near_duplicates == "off" else image_settings(source)
    shards: dict[str, Shard] = {unit.shard.uri: unit.shard for unit in wanted}
    found: dict[str, dict[str, Content]] = {}
    for uri, shard in shards.items():
        try:
            state = shard_state(shard, source.s3)
        except (ObjectMissingError, ObjectDeniedError):
            continue  # gone since it was listed: its members are rejected where they are read
        kept = find_contents(store, state)
        if looks is not None:
            kept = {name: c for name, c in kept.items() if c.perceptual_hash is not None}
        units = [unit for unit in wanted if unit.shard.uri == uri]
        missing = without(units, {uri: set(kept)})
        read = read_contents(missing, ReadSettings(source.s3, store, looks))
        new = {content.member: content for _, content in read}
        found[uri] = kept | new
        if new:
            keep_contents(store, state, found[uri].values())
    return found


def _foreign(dataset: Dataset, planned: set[str]) -> list[Foreign]:
    """Pictures of the dataset that the plan does not hold, in commit order."""
    others = {record.unit_id for record in dataset.commits()} - planned
    if not others:
        return []
    rest = dataset.only(others)
    keys: dict[str, set[str]] = {}
    columns = ["screen_id", "query_kind", "instruction", "element_index"]
    for _, part in rest.parts("annotations", columns):
        for row in part.filter(pc.equal(part["element_index"], 0)).to_pylist():
            key = query_key(QueryKind(row["query_kind"]), row["instruction"])
            keys.setdefault(row["screen_id"], set()).add(key)
    columns = ["screen_id", "shard", "member", "byte_size", "perceptual_hash"]
    return [
        Foreign(
            row["screen_id"],
            locator(row["shard"], row["member"]),
            row["byte_size"],
            frozenset(keys.get(row["screen_id"], ())),
            row["perceptual_hash"],
        )
        for _, part in rest.parts("screens", columns)
        for row in part.to_pylist()
    ]


def _tell(units: Sequence[Unit]) -> None:
    members = [member for unit in units for member in unit.members]
    copies = sum(member.copy is not None for member in members)
    near = sum(member.look is not None and member.look.near is not None for member in members)
    if copies or near:
        log.info(
            "of %d screens %d are copies of earlier ones and %d look like one",
            len(members), copies, near,
        )  # fmt: skip
