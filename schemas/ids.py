"""Identifiers: hashes of content, never of a clock or a random source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"


def sha256_hex(data: bytes) -> str:
    """SHA-256 of `data` as 64 lower-case hex digits; of the original bytes it is the screen id."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Json) -> str:
    """JSON with sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def content_id(value: Json, length: int = 32) -> str:
    """A hex id of `length` digits (4 bits each) for a JSON value.

    32 digits are 128 bits: among 10^9 ids the chance of one collision is about 10^-21
    (birthday bound n^2 / 2^129). Text that is not Unicode, as of a file name that is not UTF-8, has
    an id too.
    """
    data = canonical_json(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:length]


def unit_draw(identifier: str, purpose: str) -> float:
    """A number in [0, 1) fixed by `identifier` and `purpose`: a repeatable random draw."""
    digest = hashlib.sha256(f"{purpose}:{identifier}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
