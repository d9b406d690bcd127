"""What every shard format gives: an index when planning, raw screens when reading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from schemas.records import ByteRange, Member, Problem, Shard
from transforms.storage import ObjectStat, Storage


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """Everything found in a shard: each of its images is in exactly one of the two.

    Attributes:
        points: places from which a compressed shard can be read on, in the format of its reader.
        costly: whether it was found by going through the whole shard, just now.
        state: of the shard's file when it was indexed; empty for a folder.
    """

    members: tuple[Member, ...]
    problems: tuple[Problem, ...] = ()
    points: bytes = b""
    costly: bool = False
    state: str = ""

    def read_through(self, points: bytes = b"") -> Self:
        """The same, found by going through the whole shard."""
        return replace(self, points=points, costly=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a shard, before it is known what it belongs to.

    Attributes:
        flags: what its screen will be flagged with, should it be one.
    """

    span: ByteRange
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A shard that is being read.

    Attributes:
        state: what tells these very bytes from any others under the same name.
        points: as in `ShardIndex`, where they were kept; empty = none.
    """

    shard: Shard
    storage: Storage
    state: str
    points: bytes = b""


@dataclass(frozen=True, slots=True)
class RawScreen:
    """The bytes of one screenshot as they are in the shard.

    Attributes:
        data: the image file.
        sidecar: the JSON that came with it, or None.
        defaults: sidecar fields that `shard.toml` gives where the sidecar is silent.
    """

    member: Member
    data: bytes
    sidecar: bytes | None
    defaults: tuple[tuple[str, str], ...] = ()


def state_of(stat: ObjectStat) -> str:
    """What tells a file from another one at the same place: its name, size, version and age."""
    return "\n".join([stat.uri, str(stat.size), stat.version, str(stat.modified)])
