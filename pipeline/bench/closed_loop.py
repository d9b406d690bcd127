"""Exactly N requests in an engine: one is submitted as soon as one is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from schemas.errors import PantallaError
from schemas.records import Answer
from transforms.engines.base import Engine, EngineRequest

Chain: TypeAlias = "Sequence[EngineRequest]"
"""Requests that are asked one after the answer of another; mostly there is just one."""


class UnansweredError(PantallaError):
    """A request of a benchmark was refused, so that its figures would mean nothing."""


@dataclass(frozen=True, slots=True)
class Finished:
    """One answered request.

    Attributes:
        latency: seconds from its submission to its whole answer.
        first_token: seconds to its first token; None = the engine does not say.
        output_tokens: of all its completions.
    """

    latency: float
    first_token: float | None
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Window:
    """What was finished while N requests were in flight all the time, and how long that was.

    Attributes:
        seconds: from the last answer of the ramp to the last one that counts.
        waited: of these, in which the next request was not ready.
        submitting: of these, inside `submit`: vLLM renders prompts and processes images there, in
            this process and one request at a time.
        whole_seconds: from the first submission to the last answer: ramp and drain are in it.
        whole_tokens: in and out, of everything that was finished in that time.
    """

    in_flight: int
    seconds: float
    waited: float
    submitting: float
    finished: tuple[Finished, ...]
    whole_seconds: float
    whole_tokens: int


class ClosedLoop:
    """Feeds an engine with chains of requests, so that `in_flight` of them are always in it.

    When a request is finished, the next of its chain follows it; after the last one, the first of
    the next chain. The calling thread must own the engine.

    Attributes:
        finished: everything answered so far, in the order of the answers.
        waited: seconds in which a request was wanted and the chains had none ready.
        submitting: seconds inside `submit`.
    """

    def __init__(
        self,
        engine: Engine,
        chains: Iterable[Chain],
        in_flight: int,
        watch: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.finished: list[Finished] = []
        self.waited = self.submitting = 0.0
        self._engine, self._chains, self._in_flight = engine, iter(chains), in_flight
        self._watch, self._now = watch, now
        self._open: dict[str, tuple[float, Iterator[EngineRequest]]] = {}

    def run(self, ramp: int, counted: int) -> Window:
        """Finish `ramp` requests that do not count, then `counted` or a few more that do, then all.

        Args:
            ramp: at least `in_flight`: the first ones are submitted all at once.
            counted: answers that come together in the last step all count.

        Raises:
            UnansweredError: if a request is refused, or the chains end before the window does.
            EngineError: when the engine cannot go on.
        """
        began = self._now()
        self._until(ramp)
        first, opened = len(self.finished), self._now()
        waited, submitting = self.waited, self.submitting
        self._until(first + counted)
        seconds, window = self._now() - opened, tuple(self.finished[first:])
        waited, submitting = self.waited - waited, self.submitting - submitting
        self._stop_following()
        self.finish()
        tokens = sum(one.prompt_tokens + one.output_tokens for one in self.finished)
        whole = self._now() - began
        return Window(self._in_flight, seconds, waited, submitting, window, whole, tokens)

    def _stop_following(self) -> None:
        self._chains = iter(())
        self._open = {key: (since, iter(())) for key, (since, _) in self._open.items()}

    def finish(self) -> None:
        """Ask everything that is left.

        Raises:
            UnansweredError: if a request is refused.
            EngineError: when the engine cannot go on.
        """
        self._fill()
        while self._open:
            self._step()

    def _until(self, finished: int) -> None:
        self._fill()
        while len(self.finished) < finished:
            if len(self._open) < self._in_flight:
                raise UnansweredError(f"the requests ran out with {self._in_flight} to keep up")
            self._step()

    def _fill(self) -> None:
        while len(self._open) < self._in_flight:
            since = self._now()
            chain = next(self._chains, None)
            self.waited += self._now() - since
            if chain is None:
                return
            self._follow(iter(chain))

    def _follow(self, chain: Iterator[EngineRequest]) -> None:
        request = next(chain, None)
        if request is not None:
            since = self._now()
            self._open[request.request_id] = (since, chain)
            self._engine.submit(request)
            self.submitting += self._now() - since

    def _step(self) -> None:
        answers = self._engine.collect()
        now = self._now()
        for answer in answers:
            since, chain = self._open.pop(answer.request_id)
            self.finished.append(_finished(answer, now - since))
            self._follow(chain)
        self._fill()
        self._watch()


def _finished(answer: Answer, latency: float) -> Finished:
    if answer.error_reason is not None:
        raise UnansweredError(
            f"a request was not answered ({answer.error_reason}): {answer.error_detail}"
        )
    return Finished(
        latency,
        answer.first_token_seconds,
        answer.prompt_tokens,
        answer.cached_tokens,
        sum(one.token_count for one in answer.completions),
    )
