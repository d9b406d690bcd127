"""The plan: which shards, units and lots there are, listed once before anything runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pipeline.check_boxes import check_boxes
from pipeline.config import JobConfig
from pipeline.partition import Partition, part_of
from pipeline.separate import without_output
from schemas.errors import InputError
from schemas.records import Lot, Problem, Shard, Unit
from transforms.queries import load_queries
from transforms.shards import (
    IndexStore,
    ShardIndex,
    index_shard,
    list_shards,
    make_lots,
    split_units,
)
from transforms.storage import normalize_uri, storage_for

INDEX_THREADS = 8
"""Shards indexed at once: on S3 each waits for several answers."""


LOT_UNITS = 256
"""Units of a lot where one process does all. At a lot's end the engine runs empty, and the next
lot's screens are read only then. `python -m tests.benchmark.lot_end` measures what that costs, with
a scripted engine of 256 places whose answers take 1.8 s, on two busy cores: with eight questions a
screen 1.0 s of full speed, 0.4 % of 64 units and 0.1 % of 256; with one, which asks for more
screens a second than two cores decode, 2.0 s, 7 % of 64 units and 1.8 % of 256."""

SPREAD_LOT_UNITS = 64
"""Where workers share a job, a lot is what one of them takes at once: smaller ones end together."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything the job will read, in a fixed order.

    Attributes:
        queries_sha256: hash of the queries file, or empty.
        kept: where indexes of shards are kept, beside the dataset and all its versions; or None.
        new_indexes: of shards that had to be gone through, to be kept there.
    """

    shards: tuple[Shard, ...]
    units: tuple[Unit, ...]
    queries_sha256: str = ""
    kept: IndexStore | None = None
    new_indexes: tuple[tuple[Shard, ShardIndex], ...] = ()

    def keep_indexes(self) -> None:
        """Keep what was found by going through large shards; the dataset must be ours by now."""
        if self.kept is not None:
            for shard, index in self.new_indexes:
                self.kept.keep(shard, index)

    @property
    def members(self) -> int:
        """Screenshots in the plan."""
        return sum(len(unit.members) for unit in self.units)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was found wrong while listing; each becomes a reject."""
        return tuple(problem for unit in self.units for problem in unit.problems)

    def part(self, partition: Partition | None) -> Plan:
        """The plan of one partition; of all of it where there is none. Shards stay as they are."""
        if partition is None:
            return self
        return replace(self, units=part_of(self.units, partition))

    def lots(
        self, done: frozenset[str], lot_units: int | None = None, *, spread: bool = False
    ) -> list[Lot]:
        """The units that are not in `done`, as lots.

        Args:
            done: ids of units that are committed.
            lot_units: most units of a lot; None = `LOT_UNITS` or `SPREAD_LOT_UNITS`.
            spread: whether a Beam runner gives lots to several workers.
        """
        most = lot_units or (SPREAD_LOT_UNITS if spread else LOT_UNITS)
        return make_lots([unit for unit in self.units if unit.unit_id not in done], most)


def make_plan(config: JobConfig) -> Plan:
    """List shards and their members; no model is loaded, nothing is written.

    The first screens of the first shards are read, to see whether boxes are what they are declared.

    Raises:
        InputError: if a pattern matches nothing, nothing at all is found, or the boxes of the
            sidecars contradict their declaration.
        ConfigError: if the queries file has a bad line, or the dataset lies in its own input.
    """
    source = config.input
    shards = without_output(list_shards(source.shards, source.s3), config)
    kept, new = index_store(config), []
    units: list[Unit] = []
    with ThreadPoolExecutor(INDEX_THREADS) as pool:
        indexes = pool.map(lambda shard: index_shard(shard, source.s3, kept), shards)
    for shard, index in zip(shards, indexes, strict=True):
        units += split_units(shard, index, source.unit_screens)
        if index.costly:
            new.append((shard, index))
    if not units:
        raise InputError(f"no screenshot in {', '.join(source.shards)}")
    check_boxes(units, source)
    if source.queries is None:
        return Plan(tuple(shards), tuple(units), kept=kept, new_indexes=tuple(new))
    queries = load_queries(source.queries, source.s3)
    units[0] = _with_problems(units[0], queries.unmatched(units))
    return Plan(tuple(shards), tuple(units), queries.sha256, kept, tuple(new))


def index_store(config: JobConfig) -> IndexStore:
    """Where the indexes of the job's shards are kept: beside its dataset."""
    dataset = normalize_uri(config.output.dataset).rstrip("/")
    return IndexStore(dataset, storage_for(dataset, config.output.s3_endpoint))


def _with_problems(unit: Unit, problems: list[Problem]) -> Unit:
    """Queries that match no screen are rejects of the first unit: nothing is lost in silence."""
    return Unit(unit.unit_id, unit.shard, unit.index, unit.members, unit.problems + tuple(problems))
