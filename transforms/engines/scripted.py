"""An engine that answers from a function: for tests, and for runs that need no model."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from schemas.caches import CacheCounts
from schemas.codes import RejectReason
from schemas.errors import EngineError
from schemas.records import Answer
from schemas.resize import AnyResizeRule
from transforms.engines.base import EngineInfo, EngineRequest

_FOREVER = 86_400.0


class Mishap(StrEnum):
    """What a request does to the engine that gets it.

    `DIES`: the engine is dead from the next `collect` on. `HANGS`: it answers nothing any more,
    and gives no sign of life. `BLOCKS`: `collect` does not return. `STUCK`: this request is never
    answered, its neighbours are.
    """

    DIES = "dies"
    HANGS = "hangs"
    BLOCKS = "blocks"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class ScriptedLatency:
    """When answers come back.

    Attributes:
        hold: calls of `collect` a request waits at least before it may be answered.
        per_collect: answers given by one `collect` at most.
        shuffle_seed: answers come in an order drawn from this seed; None = first in, first out.
        fail_after: the engine dies once it has given this many answers; None = never.
        fail_from: the engine dies when it holds this many requests at once; None = never.
        sleep: seconds that each `collect` with work takes.
    """

    hold: int = 0
    per_collect: int = 4
    shuffle_seed: int | None = 0
    fail_after: int | None = None
    fail_from: int | None = None
    sleep: float = 0.0


class ScriptedEngine:
    """Answers each request with `script(request)`, in a repeatable order.

    Attributes:
        submitted: request ids in the order they were handed over.
    """

    def __init__(
        self,
        script: Callable[[EngineRequest], Answer],
        latency: ScriptedLatency = ScriptedLatency(),
        max_in_flight: int = 16,
        processor: AnyResizeRule | None = None,
        mishap: Callable[[EngineRequest], Mishap | None] = lambda _: None,
    ) -> None:
        self.submitted: list[str] = []
        self.steps = 0
        self._script, self._mishap = script, mishap
        self._latency = latency
        self._info = EngineInfo("scripted", "1", "scripted", "1", max_in_flight, processor)
        self._random = random.Random(latency.shuffle_seed)
        self._waiting: dict[str, tuple[int, EngineRequest]] = {}
        self._stuck: dict[str, tuple[float, Mishap]] = {}
        self._collects = 0
        self._answered = 0
        self._closed = False

    @property
    def info(self) -> EngineInfo:
        """What this engine is."""
        return self._info

    @property
    def caches(self) -> CacheCounts:
        """It has none."""
        return CacheCounts()

    def submit(self, request: EngineRequest) -> None:
        """Hand over one request.

        Raises:
            EngineError: if the engine is closed, or the id is in flight already.
        """
        self._alive()
        key = request.request_id
        if key in self._waiting or key in self._stuck:
            raise EngineError(f"request {key} is in flight already")
        self.submitted.append(key)
        mishap = self._mishap(request)
        if mishap is None:
            self._waiting[key] = (self._collects + self._latency.hold, request)
        else:
            limit = request.timeout_seconds
            until = time.monotonic() + (_FOREVER if limit is None else limit)
            self._stuck[key] = (until, mishap)

    def collect(self) -> list[Answer]:
        """Answers that are due.

        Raises:
            EngineError: if the engine is closed, or has died as was asked of it.
        """
        self._alive()
        mishaps = {mishap for _, mishap in self._stuck.values()}
        if Mishap.BLOCKS in mishaps:
            time.sleep(_FOREVER)
        if Mishap.HANGS in mishaps:
            return []
        self.steps += 1
        if self._latency.sleep and self._waiting:
            time.sleep(self._latency.sleep)
        due = [key for key, (turn, _) in self._waiting.items() if turn <= self._collects]
        self._collects += 1
        if self._latency.shuffle_seed is not None:
            self._random.shuffle(due)
        now = due[: self._latency.per_collect]
        answers = [self._script(self._waiting.pop(key)[1]) for key in now]
        self._answered += len(answers)
        return answers + self._given_up()

    def close(self) -> None:
        """End; further calls are errors."""
        self._closed = True

    def _given_up(self) -> list[Answer]:
        now = time.monotonic()
        late = [key for key, (until, _) in self._stuck.items() if now >= until]
        for key in late:
            del self._stuck[key]
        reason, said = RejectReason.REQUEST_TIMEOUT, "the scripted engine was never going to answer"
        return [Answer(key, error_reason=reason, error_detail=said) for key in late]

    def _alive(self) -> None:
        if self._closed:
            raise EngineError("the scripted engine is closed")
        if any(mishap is Mishap.DIES for _, mishap in self._stuck.values()):
            raise EngineError("the scripted engine died of a request, as asked")
        limit = self._latency.fail_after
        if limit is not None and self._answered >= limit:
            raise EngineError(f"the scripted engine died after {limit} answers, as asked")
        most = self._latency.fail_from
        if most is not None and len(self._waiting) >= most:
            raise EngineError(f"the scripted engine died of {most} requests at once, as asked")
