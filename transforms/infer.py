"""Requests to answers: the engine is always fed from the next unit while the last one finishes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from schemas.errors import DeadlineError
from schemas.records import Answer, Screen, Unit
from transforms.engines.base import Engine, EngineRequest
from transforms.engines.clock import BusyClock
from transforms.pixel_limits import ImagesInFlight
from transforms.prefetch import Prefetch
from transforms.work import AnsweredUnit, Ask, Asked, ComposeEvent, Posed, Refused, UnitEnd

READ_SECONDS = 1800.0
"""Longest time without a screen from the reader while the engine has nothing to do."""

IDLE_WAIT = 0.02
"""Seconds to wait for the next screen when the engine has nothing to do."""


class _Desk:
    """The units in work and where each answer belongs."""

    def __init__(self, most: int | None) -> None:
        self.images = ImagesInFlight(most)
        self._units: dict[str, AnsweredUnit] = {}
        self._waiting: dict[str, set[str]] = {}
        self._owner: dict[str, str] = {}
        self._closed: set[str] = set()
        self.in_flight = 0
        self.heard = time.monotonic()
        self.done: deque[AnsweredUnit] = deque()

    def unit(self, unit: Unit) -> AnsweredUnit:
        key = unit.unit_id
        if key not in self._units:
            self._units[key] = AnsweredUnit(unit, started=time.monotonic())
            self._waiting[key] = set()
        return self._units[key]

    def expect(self, unit: Unit, screen: Screen, ask: Ask) -> None:
        request = ask.request
        self.unit(unit).posed.append(Posed(screen, ask.question))
        self._owner[request.request_id] = unit.unit_id
        self._waiting[unit.unit_id].add(request.request_id)

    def close(self, unit: Unit) -> None:
        self.unit(unit)
        self._closed.add(unit.unit_id)
        self._finish(unit.unit_id)

    def receive(self, answer: Answer) -> None:
        key = self._owner.pop(answer.request_id)
        self.in_flight -= 1
        self.images.drop(answer.request_id)
        self.heard = time.monotonic()
        self._units[key].answers[answer.request_id] = answer
        self._waiting[key].discard(answer.request_id)
        self._finish(key)

    def _finish(self, key: str) -> None:
        if key in self._closed and not self._waiting[key]:
            self._closed.discard(key)
            del self._waiting[key]
            self.done.append(self._units.pop(key))


def infer(
    events: Prefetch[ComposeEvent],
    engine: Engine,
    clock: BusyClock,
    give_up: Callable[[], bool] = lambda: False,
) -> Iterator[AnsweredUnit]:
    """Units as they are answered: `infer_in_steps` without its steps."""
    steps = infer_in_steps(events, engine, clock, give_up)
    return (step for step in steps if step is not None)


def infer_in_steps(
    events: Prefetch[ComposeEvent],
    engine: Engine,
    clock: BusyClock,
    give_up: Callable[[], bool] = lambda: False,
    most: int | None = None,
) -> Iterator[AnsweredUnit | None]:
    """Ask everything that `events` brings; yield each unit when its last answer is in.

    After each step of the engine None is yielded, so that the caller can see to what waits; the
    sooner it comes back, the sooner the engine goes on.

    Requests of one screen are submitted one after another, so that the engine's prefix and image
    caches hit. The engine is stepped whenever it has work, and fed whenever it has room; only
    when it has nothing at all does this wait for the reader. Units may finish out of order.

    Args:
        events: screens with their requests, unit by unit.
        engine: owned by the calling thread.
        clock: measures how long the engine has work.
        give_up: asked after every step; once true, units that are not whole are dropped.
        most: bytes of images that the engine may hold; one always passes.

    Raises:
        EngineError: when the engine cannot go on.
        DeadlineError: when the reader brings nothing for `READ_SECONDS`.
    """
    desk = _Desk(most)
    pending: deque[EngineRequest] = deque()
    while not (events.exhausted and not pending and not desk.in_flight):
        if give_up():
            return
        _fill(events, engine, desk, pending, clock)
        if desk.in_flight:
            _step(engine, desk, clock)
        while desk.done:
            yield desk.done.popleft()
        yield None


def _step(engine: Engine, desk: _Desk, clock: BusyClock) -> None:
    with clock.step():
        answers = engine.collect()
    for answer in answers:
        desk.receive(answer)
    if not desk.in_flight:
        clock.stop()


def _fill(
    events: Prefetch[ComposeEvent],
    engine: Engine,
    desk: _Desk,
    pending: deque[EngineRequest],
    clock: BusyClock,
) -> None:
    """Submit until the engine is full, nothing more is ready, or a unit is done without it.

    Rejects and answers that are known already need no engine: however many there are, the caller
    gets its turn.
    """
    while desk.in_flight < engine.info.max_in_flight and not desk.done:
        if pending:
            if not desk.images.take(pending[0]):
                return
            clock.start()
            engine.submit(pending.popleft())
            desk.in_flight += 1
            continue
        event = events.poll(0.0 if desk.in_flight else IDLE_WAIT)
        if event is None:
            if not desk.in_flight and time.monotonic() - desk.heard > READ_SECONDS:
                raise DeadlineError(f"no screen came from the shards within {READ_SECONDS:g} s")
            return
        desk.heard = time.monotonic()
        _take(event, desk, pending)
        if not desk.in_flight and not pending:
            return


def _take(event: ComposeEvent, desk: _Desk, pending: deque[EngineRequest]) -> None:
    record = desk.unit(event.unit)
    match event:
        case Asked():
            record.screens.append(event.screen)
            for ask in event.asks:
                desk.expect(event.unit, event.screen, ask)
                pending.append(ask.request)
        case Refused():
            record.refused.append(event)
        case UnitEnd():
            desk.close(event.unit)
