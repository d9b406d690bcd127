"""An engine that answers from a function: for tests, and for runs that need no model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from schemas.errors import EngineError
from schemas.records import Answer
from schemas.resize import AnyResizeRule
from transforms.engines.base import EngineInfo, EngineRequest


@dataclass(frozen=True, slots=True)
class ScriptedLatency:
    """When answers come back.

    Attributes:
        hold: calls of `collect` a request waits at least before it may be answered.
        per_collect: answers given by one `collect` at most.
        shuffle_seed: answers come in an order drawn from this seed; None = first in, first out.
        fail_after: the engine dies once it has given this many answers; None = never.
    """

    hold: int = 0
    per_collect: int = 4
    shuffle_seed: int | None = 0
    fail_after: int | None = None


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
    ) -> None:
        self.submitted: list[str] = []
        self._script = script
        self._latency = latency
        self._info = EngineInfo("scripted", "1", "scripted", "1", max_in_flight, processor)
        self._random = random.Random(latency.shuffle_seed)
        self._waiting: dict[str, tuple[int, EngineRequest]] = {}
        self._collects = 0
        self._answered = 0
        self._closed = False

    @property
    def info(self) -> EngineInfo:
        """What this engine is."""
        return self._info

    def submit(self, request: EngineRequest) -> None:
        """Hand over one request.

        Raises:
            EngineError: if the engine is closed, or the id is in flight already.
        """
        self._alive()
        if request.request_id in self._waiting:
            raise EngineError(f"request {request.request_id} is in flight already")
        self.submitted.append(request.request_id)
        self._waiting[request.request_id] = (self._collects + self._latency.hold, request)

    def collect(self) -> list[Answer]:
        """Answers that are due.

        Raises:
            EngineError: if the engine is closed, or has died as `fail_after` asks.
        """
        self._alive()
        due = [key for key, (turn, _) in self._waiting.items() if turn <= self._collects]
        self._collects += 1
        if self._latency.shuffle_seed is not None:
            self._random.shuffle(due)
        now = due[: self._latency.per_collect]
        answers = [self._script(self._waiting.pop(key)[1]) for key in now]
        self._answered += len(answers)
        return answers

    def close(self) -> None:
        """End; further calls are errors."""
        self._closed = True

    def _alive(self) -> None:
        if self._closed:
            raise EngineError("the scripted engine is closed")
        limit = self._latency.fail_after
        if limit is not None and self._answered >= limit:
            raise EngineError(f"the scripted engine died after {limit} answers, as asked")
