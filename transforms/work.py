"""What flows between the stages of one lot: small envelopes around records and pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from PIL import Image

from schemas.codes import Route
from schemas.records import Answer, Reject, Screen, Unit
from schemas.scored import Scored
from transforms.compose import Question
from transforms.engines.base import EngineRequest


@dataclass(frozen=True, slots=True)
class UnitEnd:
    """Marks that every event of `unit` has gone by."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Refused:
    """An item of `unit` that became a reject.

    Attributes:
        is_member: whether a whole member was lost, rather than a query or a notice.
        is_query: whether a query was lost; neither = a notice that costs no screen and no query.
        before_screen: the query was refused while the sidecar was read, so it is not among its
            screen's queries.
    """

    unit: Unit
    reject: Reject
    is_member: bool = False
    is_query: bool = False
    before_screen: bool = False


@dataclass(frozen=True, slots=True)
class Decoded:
    """A screen with its pixels: RGB, upright, original size."""

    unit: Unit
    screen: Screen
    image: Image.Image


@dataclass(frozen=True, slots=True)
class Ask:
    """A question and the request that asks it."""

    question: Question
    request: EngineRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """A screen and everything that is asked about it; requests share one image."""

    unit: Unit
    screen: Screen
    asks: tuple[Ask, ...]


DecodeEvent: TypeAlias = "Decoded | Refused | UnitEnd"
ComposeEvent: TypeAlias = "Asked | Refused | UnitEnd"


@dataclass(frozen=True, slots=True)
class Posed:
    """What is kept of an `Ask` once the engine has it: no pixels."""

    screen: Screen
    question: Question


@dataclass(slots=True)
class AnsweredUnit:
    """A unit whose every request has come back.

    Attributes:
        refused: rejects so far, in the order they were found.
        posed: in the order they were asked; `answers` by sample id.
        started: monotonic seconds when the unit's first event arrived.
    """

    unit: Unit
    started: float
    screens: list[Screen] = field(default_factory=list)
    posed: list[Posed] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Judged:
    """One sample with its answer read, scored and routed."""

    screen: Screen
    question: Question
    answer: Answer
    scored: Scored
    route: Route
    truth_hit: bool | None


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """A unit that is ready to be written."""

    unit: Unit
    started: float
    screens: tuple[Screen, ...]
    judged: tuple[Judged, ...]
    refused: tuple[Refused, ...]
