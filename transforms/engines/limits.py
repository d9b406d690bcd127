"""How much trouble with an engine is borne, and for how long anything is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STEADY_ANSWERS = 1000
"""Answers without trouble after which the rebuilds are counted from zero again."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """How much trouble is borne.

    Attributes:
        request_timeout_seconds: a request that is not answered within this time is given up.
        hang_seconds: an engine with work and without any sign of life for this long is dead.
        start_seconds: longest start of an engine, its check included.
        recycle_answers: a healthy engine is started anew after so many answers; None = never.
        max_rebuilds: rebuilds in a row; the count begins anew when a culprit is found, and after
            `STEADY_ANSWERS`. To find one request among 256 takes nine.
    """

    request_timeout_seconds: float = 900.0
    hang_seconds: float = 300.0
    start_seconds: float = 3600.0
    max_rebuilds: int = 10
    recycle_answers: int | None = None


@dataclass(frozen=True, slots=True)
class Doing:
    """What an engine's thread is inside of, and since when (monotonic seconds)."""

    what: Literal["start", "work", "idle"]
    since: float
