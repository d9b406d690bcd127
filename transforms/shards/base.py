"""What every shard format gives: an index when planning, raw screens when reading."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.records import Member, Problem


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """Everything found in a shard: each of its images is in exactly one of the two."""

    members: tuple[Member, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class RawScreen:
    """The bytes of one screenshot as they are in the shard.

    Attributes:
        data: the image file.
        sidecar: the JSON file that came with it, or None.
    """

    member: Member
    data: bytes
    sidecar: bytes | None
