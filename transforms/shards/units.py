"""Shards to units, units to lots: deterministic, so that a second run finds the same ones."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.ids import Json, content_id
from schemas.records import Lot, Member, Problem, Shard, ShardKind, Unit
from transforms.shards.base import ShardIndex


def split_units(shard: Shard, index: ShardIndex, unit_screens: int) -> list[Unit]:
    """Cut a shard into runs of at most `unit_screens` members, at least one.

    Problems belong to the last unit: when a cut shard is completed later, the units before the
    cut keep their ids, and with them what was already computed.
    """
    members = index.members
    starts = range(0, len(members), unit_screens) or range(1)
    units = []
    for number, start in enumerate(starts):
        last = number == len(starts) - 1
        part = members[start : start + unit_screens]
        problems = index.problems if last else ()
        unit_id = _unit_id(shard, part, problems)
        units.append(Unit(unit_id, shard, number, part, problems))
    return units


def make_lots(units: Sequence[Unit], lot_units: int) -> list[Lot]:
    """Runs of at most `lot_units` neighbouring units, numbered from 0."""
    starts = range(0, len(units), lot_units)
    return [Lot(n, tuple(units[start : start + lot_units])) for n, start in enumerate(starts)]


def _unit_id(shard: Shard, members: tuple[Member, ...], problems: tuple[Problem, ...]) -> str:
    """Hash of what is known without reading pixels.

    The size of a Parquet file counts, since the sizes of its rows are not known; of a tar it does
    not, so that one which grew keeps its first units. An ETag counts wherever there is one.
    """
    whole = shard.byte_size if shard.kind is ShardKind.PARQUET else 0
    names: list[Json] = [
        [m.name, m.image.size, m.sidecar.size if m.sidecar else -1] for m in members
    ]
    found: list[Json] = [[problem.member, problem.reason.value] for problem in problems]
    content: list[Json] = [shard.uri, shard.version, whole, names, found]
    said: list[Json] = [[d.folder, [list(field) for field in d.fields]] for d in shard.defaults]
    return content_id([*content, said] if said else content)
