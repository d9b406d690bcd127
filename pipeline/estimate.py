"""What a job would do, before it runs: counted where that is cheap, `None` where it is unknown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from pipeline.config import JobConfig
from pipeline.dataset import Dataset, open_root
from pipeline.fingerprint import fingerprint_of
from pipeline.plan import Plan, make_plan
from pipeline.report.last_work import last_work
from pipeline.versions import newest_root
from schemas.codes import QueryKind
from schemas.records import Member, Shard, ShardKind, Unit
from transforms.commit import HEAD
from transforms.profiles.load import load_profile
from transforms.queries import QueriesFile, load_queries
from transforms.shards import read_sidecar
from transforms.sidecar import parse_sidecar
from transforms.storage import S3Address, join_uri, storage_for

_Queries: TypeAlias = "Counter[tuple[str, QueryKind]]"
"""Queries by unit id and kind."""

MAX_SIDECARS = 2000
"""Sidecars read to count queries: a second or two on a disk."""


@dataclass(frozen=True, slots=True)
class ShardEstimate:
    """One shard of the plan; `units_done` are committed already."""

    uri: str
    kind: str
    byte_size: int
    units: int
    units_done: int
    screens: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The whole job.

    Attributes:
        problems: what listing found wrong, by reason; each becomes a reject.
        queries: questions of the whole plan; None = not counted, see `queries_note`.
        answers: answers to generate for the units that are left: k per grounding query.
        screens_per_second: of the last run into this dataset; None = unknown.
        seconds: for what is left, at that rate.
        cost: for what is left, at the configured price of a machine hour.
        conflict: why the run would be refused, or "".
    """

    dataset: str
    shards: tuple[ShardEstimate, ...]
    units: int
    units_done: int
    screens: int
    screens_left: int
    problems: dict[str, int]
    queries: int | None
    answers: int | None
    queries_note: str
    screens_per_second: float | None
    seconds: float | None
    cost: float | None
    currency: str
    conflict: str


def estimate(config: JobConfig) -> Estimate:
    """List what there is and say what is left to do.

    Raises:
        InputError: if a pattern matches nothing.
        ConfigError: if the profile or the queries file is wrong.
    """
    plan = make_plan(config)
    dataset = _existing(config)
    done = frozenset() if dataset is None else frozenset(r.unit_id for r in dataset.commits())
    left = [unit for unit in plan.units if unit.unit_id not in done]
    screens_left = sum(len(unit.members) for unit in left)
    queries, note = _count_queries(config, plan.units)
    last = None if dataset is None else last_work(dataset)
    rate = None if last is None else last.screens_per_second
    seconds = screens_left / rate if rate else None
    price = config.cost.machine_hour
    return Estimate(
        dataset=config.output.dataset,
        shards=tuple(_shard(shard, plan, done) for shard in plan.shards),
        units=len(plan.units),
        units_done=len(plan.units) - len(left),
        screens=plan.members,
        screens_left=screens_left,
        problems=dict(sorted(Counter(p.reason.value for p in plan.problems).items())),
        queries=None if queries is None else sum(queries.values()),
        answers=_answers(config, queries, left),
        queries_note=note,
        screens_per_second=rate,
        seconds=seconds,
        cost=seconds / 3600 * price if seconds is not None and price is not None else None,
        currency=config.cost.currency,
        conflict="" if dataset is None else _conflict(config, plan, dataset),
    )


def estimate_json(found: Estimate) -> str:
    """The estimate as indented JSON text; keys are the attributes of `Estimate`."""
    return json.dumps(asdict(found), indent=2, ensure_ascii=False)


def _existing(config: JobConfig) -> Dataset | None:
    uri = newest_root(config.output.dataset, config.output.s3_endpoint)
    if not storage_for(uri, config.output.s3_endpoint).exists(join_uri(uri, HEAD)):
        return None
    return open_root(uri, config.output.s3_endpoint)


def _conflict(config: JobConfig, plan: Plan, dataset: Dataset) -> str:
    from pipeline.settings import worker_settings

    if not dataset.commits():
        return ""
    wanted = fingerprint_of(worker_settings(config, plan).ingredients)
    if wanted == dataset.describe().fingerprint:
        return ""
    return "this dataset was made under other settings: the run would be refused"


def _shard(shard: Shard, plan: Plan, done: frozenset[str]) -> ShardEstimate:
    units = [unit for unit in plan.units if unit.shard.uri == shard.uri]
    return ShardEstimate(
        uri=shard.uri,
        kind=shard.kind.value,
        byte_size=shard.byte_size,
        units=len(units),
        units_done=sum(unit.unit_id in done for unit in units),
        screens=sum(len(unit.members) for unit in units),
    )


def _answers(config: JobConfig, queries: _Queries | None, left: Sequence[Unit]) -> int | None:
    if queries is None:
        return None
    return sum(
        queries[unit.unit_id, QueryKind.GROUNDING] * config.sampling.k
        + queries[unit.unit_id, QueryKind.LOCALIZATION]
        for unit in left
    )


def _count_queries(config: JobConfig, units: Sequence[Unit]) -> tuple[_Queries | None, str]:
    """Queries by unit and kind, or None with the reason why they were not counted."""
    if sum(len(unit.members) for unit in units) > MAX_SIDECARS:
        return None, f"not counted: more than {MAX_SIDECARS:,} screens"
    if any(_costly(unit.shard) for unit in units):
        return None, "not counted: sidecars inside gzip, zstd or Parquet are read with the screens"
    source = config.input
    listed = load_queries(source.queries, source.s3) if source.queries else None
    can = QueryKind.LOCALIZATION in load_profile(config.model.profile).tasks
    counts: _Queries = Counter()
    for unit in units:
        for member in unit.members:
            own = _own_queries(unit, member, listed, source.s3)
            counts[unit.unit_id, QueryKind.GROUNDING] += own
            wanted = source.enumerate_elements
            if can and (wanted == "always" or (wanted == "auto" and own == 0)):
                counts[unit.unit_id, QueryKind.LOCALIZATION] += 1
    return counts, ""


def _costly(shard: Shard) -> bool:
    return shard.kind is ShardKind.PARQUET or shard.uri.endswith(("gz", "zst", "zstd"))


def _own_queries(
    unit: Unit, member: Member, listed: QueriesFile | None, s3_endpoint: S3Address
) -> int:
    own = 0 if listed is None else len(listed.for_member(unit.shard.uri, member.name))
    if member.sidecar is None:
        return own
    data = read_sidecar(unit.shard, member, s3_endpoint)
    return own + len(parse_sidecar(data).queries)
