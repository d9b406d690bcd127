"""What a job would do, before it runs: counted where that is cheap, `None` where it is unknown."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass

from pipeline.config import JobConfig
from pipeline.dataset import Dataset, open_root
from pipeline.estimate_work import expected_work
from pipeline.fingerprint import fingerprint_of
from pipeline.plan import Plan, make_plan
from pipeline.report.last_work import last_work
from pipeline.versions import newest_root
from transforms.commit import HEAD
from transforms.storage import join_uri, storage_for


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
        looked_at: screens whose headers and sidecars were read; fewer than `screens` means that
            everything below is extrapolated from them.
        refused: screens that their headers show to be rejects, by reason; extrapolated like the
            rest, and left out of all figures below.
        megapixels: of all other screens.
        queries: questions of the whole plan.
        answers: answers to generate for the units that are left: k per grounding query.
        tokens_in: tokens of the prompts that are left, images included; the k
            answers to a question share one; None = the profile cannot say what an image takes.
        tokens_out: tokens that are left to generate, at the mean length of an earlier run.
        tokens_out_limit: the same if every answer ran to its limit.
        screens_per_second: of the last run into this dataset; None = unknown.
        seconds: for what is left, at that rate, or at the configured tokens a second.
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
    looked_at: int
    refused: dict[str, int]
    megapixels: float | None
    queries: int
    answers: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_out_limit: int
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
    work = expected_work(config, plan.units, done, dataset)
    last = None if dataset is None else last_work(dataset)
    rate = None if last is None else last.screens_per_second
    seconds = work.asked_left / rate if rate else work.seconds(config.cost.tokens_per_second)
    price = config.cost.machine_hour
    return Estimate(
        dataset=config.output.dataset,
        shards=_shards(plan, done),
        units=len(plan.units),
        units_done=len(plan.units) - len(left),
        screens=plan.members,
        screens_left=screens_left,
        problems=dict(sorted(Counter(p.reason.value for p in plan.problems).items())),
        looked_at=work.looked_at,
        refused=work.refused,
        megapixels=work.megapixels,
        queries=work.queries,
        answers=work.answers,
        tokens_in=work.tokens_in,
        tokens_out=work.tokens_out,
        tokens_out_limit=work.tokens_out_limit,
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


def _shards(plan: Plan, done: frozenset[str]) -> tuple[ShardEstimate, ...]:
    units: Counter[str] = Counter()
    units_done: Counter[str] = Counter()
    screens: Counter[str] = Counter()
    for unit in plan.units:
        units[unit.shard.uri] += 1
        units_done[unit.shard.uri] += unit.unit_id in done
        screens[unit.shard.uri] += len(unit.members)
    return tuple(
        ShardEstimate(
            uri=shard.uri,
            kind=shard.kind.value,
            byte_size=shard.byte_size,
            units=units[shard.uri],
            units_done=units_done[shard.uri],
            screens=screens[shard.uri],
        )
        for shard in plan.shards
    )
