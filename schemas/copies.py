"""What a plan knows of screens that are there more than once, or nearly so."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codes import QueryKind
from schemas.ids import content_id

_KEY_DIGITS = 16


@dataclass(frozen=True, slots=True)
class CopyOf:
    """A picture whose very bytes stand earlier in the plan.

    Attributes:
        first: `shard-uri#member` of the first copy.
        screen_id: SHA-256 of the bytes, as they were when the job was planned.
        repeated: keys of its queries that an earlier copy asks, see `query_key`; sorted.
    """

    first: str
    screen_id: str
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What a picture looks like.

    Attributes:
        perceptual_hash: PDQ, 64 hex digits.
        near: `shard-uri#member` of the earlier picture that it looks like, or None.
        distance: bits in which the two hashes differ, of 256.
        skipped: whether it is left out for that.
        screen_id: SHA-256 of the bytes, as they were when the job was planned.
    """

    perceptual_hash: str
    screen_id: str
    near: str | None = None
    distance: int = 0
    skipped: bool = False


def locator(shard_uri: str, member: str) -> str:
    """Where a picture is: `shard-uri#member`."""
    return f"{shard_uri}#{member}"


def query_key(kind: QueryKind, instruction: str) -> str:
    """What makes two queries about one picture the same one, to any model."""
    return content_id([kind.value, instruction], _KEY_DIGITS)
