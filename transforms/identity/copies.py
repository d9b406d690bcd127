"""Every later copy and look-alike of a plan, told from the contents alone.

A pure function: the same plan and contents give the same answer on every machine, whatever was
committed before, in whatever order.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from schemas.copies import CopyOf, Look, locator
from schemas.records import Member, Unit
from transforms.identity.contents import Content
from transforms.identity.near import NearIndex

NearMode: TypeAlias = Literal["mark", "skip", "keep_one"]
Contents: TypeAlias = "Mapping[str, Mapping[str, Content]]"
"""By URI of the shard, then by name of the member."""

Keys: TypeAlias = "Callable[[Unit, Member, Content], Iterable[str]]"
"""The queries that would be asked of a member, as `query_key` gives them."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A picture that the dataset holds and the plan does not: it comes before all of the plan.

    Attributes:
        locator: `shard-uri#member`.
        keys: what was asked of it.
    """

    screen_id: str
    locator: str
    byte_size: int = 0
    keys: frozenset[str] = frozenset()
    perceptual_hash: str | None = None


@dataclass(frozen=True, slots=True)
class NearSettings:
    """What is done with look-alikes.

    Attributes:
        mode: `mark` = only told; `skip` = left out where they look like an earlier screen that is
            kept; `keep_one` = of all that are linked by likeness, over others too, the first is
            kept.
        limit: bits of 256 in which two may differ.
    """

    mode: NearMode
    limit: int


@dataclass(slots=True)
class _Group:
    """Copies of one picture, in order."""

    first: str
    asked: set[str] = field(default_factory=set)


def mark_copies(
    units: Sequence[Unit],
    order: Mapping[str, int],
    contents: Contents,
    keys: Keys,
    foreign: Sequence[Foreign] = (),
    near: NearSettings | None = None,
) -> tuple[Unit, ...]:
    """The units, each member knowing of which earlier one it is a copy, or a look-alike.

    Args:
        units: the whole plan, not a partition of it.
        order: rank of each unit by id: which of two copies is the earlier one.
        contents: of the members that may be copies; of all, for look-alikes.
        keys: what is asked of a member.
        foreign: pictures that come before.
        near: what to do with look-alikes; None = nothing.
    """
    looks = _looks(units, order, contents, foreign, near) if near else {}
    shared = _shared(contents, foreign)
    groups: dict[str, _Group] = {}
    for entry in foreign:
        if entry.screen_id in shared:
            groups.setdefault(entry.screen_id, _Group(entry.locator)).asked.update(entry.keys)
    marked: dict[str, Unit] = {}
    for unit in sorted(units, key=lambda u: order[u.unit_id]):
        known = contents.get(unit.shard.uri, {})
        members = []
        for member in unit.members:
            content = known.get(member.name)
            look = looks.get(content.screen_id) if content else None
            copy = None
            if content and content.screen_id in shared and not (look and look.skipped):
                place = locator(unit.shard.uri, member.name)
                copy = _copy(groups, content, place, set(keys(unit, member, content)))
            members.append(dataclasses.replace(member, copy=copy, look=look))
        marked[unit.unit_id] = dataclasses.replace(unit, members=tuple(members))
    return tuple(marked[unit.unit_id] for unit in units)


def _shared(contents: Contents, foreign: Sequence[Foreign]) -> set[str]:
    """Pictures that are there more than once."""
    times = Counter(c.screen_id for known in contents.values() for c in known.values())
    times.update({entry.screen_id for entry in foreign})
    return {screen_id for screen_id, count in times.items() if count > 1}


def _copy(
    groups: dict[str, _Group], content: Content, place: str, asked: set[str]
) -> CopyOf | None:
    """What `content` repeats of its group, which it joins; None for the first."""
    group = groups.get(content.screen_id)
    if group is None:
        groups[content.screen_id] = _Group(place, asked)
        return None
    repeated = tuple(sorted(asked & group.asked))
    group.asked |= asked
    return CopyOf(group.first, content.screen_id, repeated)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The first copy of a picture that can be compared."""

    screen_id: str
    place: str
    value: str


def _pictures(
    units: Sequence[Unit],
    order: Mapping[str, int],
    contents: Contents,
    foreign: Sequence[Foreign],
) -> Iterator[_Seen]:
    """Each picture once, in order; those of the dataset first."""
    seen: set[str] = set()
    everything = [_Seen(f.screen_id, f.locator, f.perceptual_hash or "") for f in foreign]
    for unit in sorted(units, key=lambda u: order[u.unit_id]):
        known = contents.get(unit.shard.uri, {})
        found = ((m.name, known[m.name]) for m in unit.members if m.name in known)
        everything += [
            _Seen(c.screen_id, locator(unit.shard.uri, name), c.perceptual_hash or "")
            for name, c in found
        ]
    for entry in everything:
        if entry.value and entry.screen_id not in seen:
            seen.add(entry.screen_id)
            yield entry


def _looks(
    units: Sequence[Unit],
    order: Mapping[str, int],
    contents: Contents,
    foreign: Sequence[Foreign],
    near: NearSettings,
) -> dict[str, Look]:
    """What every picture looks like, by screen id."""
    pictures = list(_pictures(units, order, contents, foreign))
    here = {entry.screen_id for entry in foreign}
    index = NearIndex(near.limit)
    leader: dict[int, int] = {}
    looks: dict[str, Look] = {}
    for position, entry in enumerate(pictures):
        hits = index.near(entry.value)
        if near.mode == "keep_one":
            _link(leader, position, [hit for hit, _ in hits])
        elif hits:
            leader[position] = hits[0][0]
        if not hits or (near.mode == "keep_one" and all(bits for _, bits in hits)):
            index.add(position, entry.value)
    for position, entry in enumerate(pictures):
        first = pictures[_root(leader, position)]
        if first is entry:
            looks[entry.screen_id] = Look(entry.value, entry.screen_id)
            continue
        bits = (int(first.value, 16) ^ int(entry.value, 16)).bit_count()
        skipped = near.mode != "mark" and entry.screen_id not in here
        looks[entry.screen_id] = Look(entry.value, entry.screen_id, first.place, bits, skipped)
    return looks


def _link(leader: dict[int, int], position: int, hits: Sequence[int]) -> None:
    """Join `position` with all it looks like, under the first of them all."""
    roots = {_root(leader, hit) for hit in hits}
    if roots:
        first = min(roots)
        leader.update(dict.fromkeys(roots - {first}, first))
        leader[position] = first


def _root(leader: Mapping[int, int], position: int) -> int:
    while position in leader:
        position = leader[position]
    return position
