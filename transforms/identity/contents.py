"""The hashes of pictures, and what is asked of them: read once, when a job is planned."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from schemas.errors import MemberRejected
from schemas.ids import sha256_hex
from schemas.records import Member, Unit
from transforms.decode import ImageSettings, decode_image
from transforms.identity.near import perceptual_hash
from transforms.shards import IndexStore, RawScreen, read_unit
from transforms.sidecar import parse_sidecar
from transforms.storage import S3Address

THREADS = 2
"""Units hashed at once: hashing and decoding release the interpreter's lock."""


@dataclass(frozen=True, slots=True)
class Content:
    """One picture of a shard.

    Attributes:
        member: its name there.
        screen_id: SHA-256 of its bytes.
        instructions: what its sidecar asks, in order, as it goes into queries.
        perceptual_hash: 64 hex digits; empty where there is too little to see, or the bytes are no
            image; None where it was not asked for.
    """

    member: str
    screen_id: str
    instructions: tuple[str, ...] = ()
    perceptual_hash: str | None = None


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How pictures are read to be hashed.

    Attributes:
        looks: how they are decoded for a perceptual hash; None = they are not.
    """

    s3: S3Address = None
    kept: IndexStore | None = None
    looks: ImageSettings | None = None


def candidates(units: Iterable[Unit], foreign_sizes: Iterable[int] = ()) -> list[Unit]:
    """The units with only those members that may be a copy of another.

    These are the members of one size with another; all of them, where there is one whose size is
    not known before it is read: a row of a Parquet file may be a copy of any.

    Args:
        units: the whole plan.
        foreign_sizes: sizes of pictures that the dataset holds and the plan does not.
    """
    listed = list(units)
    sizes = Counter(member.image.size for unit in listed for member in unit.members)
    sizes.update(foreign_sizes)

    unknown = any(member.row is not None for unit in listed for member in unit.members)
    unknown = unknown and sizes.total() > 1

    def may_be(member: Member) -> bool:
        return unknown or sizes[member.image.size] > 1

    return list(_only(listed, may_be))


def _only(units: Iterable[Unit], wanted: Callable[[Member], bool]) -> Iterator[Unit]:
    for unit in units:
        members = tuple(member for member in unit.members if wanted(member))
        if members:
            yield dataclasses.replace(unit, members=members, problems=())


def without(units: Iterable[Unit], known: Mapping[str, set[str]]) -> list[Unit]:
    """The units without the members whose content is known already.

    Args:
        units: what is to be hashed.
        known: names of members by URI of the shard.
    """
    return [
        part
        for unit in units
        for part in _only([unit], partial(_is_unknown, known.get(unit.shard.uri, set())))
    ]


def _is_unknown(names: set[str], member: Member) -> bool:
    return member.name not in names


def read_contents(units: Sequence[Unit], settings: ReadSettings) -> Iterator[tuple[Unit, Content]]:
    """The content of every member that can be read, in order; the others are told when annotated.

    Raises:
        StorageError: if a store does not answer.
    """
    with ThreadPoolExecutor(THREADS, "pantalla-hash") as pool:
        for unit, found in zip(units, pool.map(partial(_contents, settings), units), strict=True):
            yield from ((unit, content) for content in found)


def _contents(settings: ReadSettings, unit: Unit) -> list[Content]:
    return [
        _content(raw, settings.looks)
        for raw in read_unit(unit, settings.s3, settings.kept)
        if isinstance(raw, RawScreen)
    ]


def _content(raw: RawScreen, looks: ImageSettings | None) -> Content:
    asked = parse_sidecar(raw.sidecar).queries
    return Content(
        member=raw.member.name,
        screen_id=sha256_hex(raw.data),
        instructions=tuple(query.instruction for query in asked),
        perceptual_hash=None if looks is None else _look(raw.data, looks),
    )


def _look(data: bytes, settings: ImageSettings) -> str:
    try:
        return perceptual_hash(decode_image(data, settings).image)
    except MemberRejected:
        return ""
