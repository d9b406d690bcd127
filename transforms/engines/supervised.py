"""An engine that survives its own death: rebuilt, and the request that killed it found by halving.

    calm        requests go straight into the engine
    it dies     whatever was in it is suspect: a new engine, which must first answer a harmless
                request, gets half of the suspects and nothing else
      dies      that half is suspect, and halved again
      lives     its answers are good; the other half is next
    one left    it has killed an engine alone, and the next engine lives: it is the culprit, and
                comes back as an answer with an error; everything that waited goes on

An engine that hangs is one that died. What is suspected and who was convicted is written down, so
that a run that ends in the middle of this is not the beginning of the same for the next run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from schemas.caches import CacheCounts
from schemas.errors import EngineError
from schemas.records import Answer
from transforms.engines.base import Engine, EngineFactory, EngineInfo, EngineRequest
from transforms.engines.limits import STEADY_ANSWERS, Doing, EngineLimits
from transforms.engines.quarantine import Quarantine
from transforms.engines.trouble import Trouble, convicted, verdict
from transforms.engines.witness import is_alive

log = logging.getLogger(__name__)

_BREATH = 0.02


class SupervisedEngine:
    """Passes requests on to an engine, and replaces it when it dies or hangs.

    One thread calls `submit`, `collect` and `close`; others may look on, also while it is stuck.
    """

    def __init__(
        self,
        factory: EngineFactory,
        limits: EngineLimits,
        trouble: Trouble,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._factory, self._limits, self._trouble, self._now = factory, limits, trouble, now
        self.doing = Doing("start", now())
        self._culprits = trouble.culprits()
        self._quarantine = Quarantine(trouble.suspects())
        self._inside: dict[str, tuple[EngineRequest, float]] = {}
        self._queue: deque[EngineRequest] = deque()
        self._ready: list[Answer] = []
        self._rebuilds = self._steady = self._unexplained = self._worked = 0
        self._found, self._past = False, CacheCounts(0, 0, 0, 0)
        self._lock = threading.Lock()
        self._engine: Engine = factory()
        self._info, self._seen = self._engine.info, (-1, now())
        self._room = self._info.max_in_flight
        self.doing = Doing("idle", now())

    @property
    def info(self) -> EngineInfo:
        """What the engine is, also while it is being rebuilt; with less room after trouble."""
        if self._room >= self._info.max_in_flight:  # nearly always, and asked for every request
            return self._info
        return replace(self._info, max_in_flight=self._room)

    @property
    def steps(self) -> int:
        """Signs of life of the engine that runs now."""
        return self._engine.steps

    @property
    def caches(self) -> CacheCounts:
        """Of every engine so far."""
        return self._past + self._engine.caches

    def submit(self, request: EngineRequest) -> None:
        """Take one request; a known culprit never reaches the engine again."""
        key = request.request_id
        if key in self._culprits:
            self._ready.append(convicted(key, self._culprits[key]))
        elif not self._quarantine.wants(request):
            self._queue.append(request)

    def collect(self) -> list[Answer]:
        """Answers that are finished, after whatever repair the engine needed.

        Raises:
            EngineError: if it died more often than is borne.
        """
        self._feed()
        answers, self._ready = self._ready, []
        if self._inside:
            self.doing = Doing("work", self._now())
            try:
                answers += self._account(self._engine.collect())
            except EngineError as error:
                self._bury(str(error))
            finally:
                self.doing = Doing("idle", self._now())
            if self._inside and self._now() - self._seen[1] > self._limits.hang_seconds:
                self._bury(f"no sign of life for {self._limits.hang_seconds:g} s")
        elif not answers:
            time.sleep(_BREATH)
        return answers

    def close(self) -> None:
        """Release the engine."""
        self._engine.close()

    def oldest(self) -> tuple[str, float] | None:
        """The request that is in the engine for longest, and for how many seconds."""
        with self._lock:
            first = next(iter(self._inside.items()), None)
        return None if first is None else (first[0], self._now() - first[1][1])

    @property
    def in_flight(self) -> int:
        """Requests that are in the engine."""
        return len(self._inside)

    def overdue(self) -> str | None:
        """Why the engine's thread must be given up, or None while there is hope."""
        doing, limits = self.doing, self._limits
        seconds = self._now() - doing.since
        if doing.what == "work" and seconds > limits.hang_seconds:
            return f"the engine is stuck for {seconds:.0f} s with {self.in_flight} requests in it"
        if doing.what == "start" and seconds > limits.start_seconds:
            return f"the engine has not started within {seconds:.0f} s"
        return None

    def remember(self) -> None:
        """Before the process is given up: write down who may be to blame for the engine's hang."""
        with self._lock:
            inside = list(self._inside)
        if self._quarantine.group is not None and len(inside) == 1:
            self._trouble.convict(inside[0], verdict("it got stuck"))
        elif inside:
            self._trouble.suspect(inside)

    def _feed(self) -> None:
        """Give the engine what it may have now."""
        quarantine = self._quarantine
        if quarantine.group is not None:
            if self._inside:
                return
            quarantine.end()
            self._conclude()
        if quarantine.waiting(idle=not self._queue and not self._inside):
            if not self._inside:
                for request in quarantine.begin():
                    if not self._put(request):
                        return
            return
        if self._worn():
            return
        while self._queue and len(self._inside) < self._room:
            if not self._put(self._queue.popleft()):
                return

    def _worn(self) -> bool:
        """Whether the engine is due to be started anew; done as soon as it is empty."""
        limit = self._limits.recycle_answers
        if limit is None or self._worked < limit:
            return False
        if not self._inside:
            log.info("the engine is started anew after %d answers", self._worked)
            self._renew()
            self.doing = Doing("idle", self._now())
        return bool(self._inside)

    def _put(self, request: EngineRequest) -> bool:
        """Hand a request to the engine; False if that killed it."""
        now = self._now()
        if not self._inside:
            self._seen = (self._engine.steps, now)
        with self._lock:
            self._inside[request.request_id] = (request, now)
        self.doing = Doing("work", now)
        try:
            limit = self._limits.request_timeout_seconds
            self._engine.submit(replace(request, timeout_seconds=limit))
        except EngineError as error:
            self._bury(str(error))
            return False
        finally:
            self.doing = Doing("idle", self._now())
        return True

    def _account(self, answers: list[Answer]) -> list[Answer]:
        for answer in answers:
            with self._lock:
                self._inside.pop(answer.request_id)
        ids = [answer.request_id for answer in answers]
        self._quarantine.answered(ids)
        self._trouble.settle(ids)
        self._steady += len(answers)
        self._worked += len(answers)
        if self._steady >= STEADY_ANSWERS:
            self._rebuilds = self._unexplained = 0
        if answers or self._engine.steps != self._seen[0]:
            self._seen = (self._engine.steps, self._now())
        return answers

    def _bury(self, what: str) -> None:
        """The engine is dead: rebuild it, and halve what may have killed it."""
        group = self._quarantine.group
        self._quarantine.end()
        suspects = [request for request, _ in self._inside.values()] if group is None else group
        self._steady = 0
        self._trouble.suspect(request.request_id for request in suspects)
        with self._lock:
            self._inside.clear()
        self._rebuild(what, suspects)
        if group is not None and len(suspects) == 1:
            self._convict(suspects[0], what)
        else:
            self._quarantine.halve(suspects)

    def _conclude(self) -> None:
        """When all suspects have lived, it may be their number that the engine cannot bear."""
        if self._quarantine.waiting(idle=False):
            return
        if not self._found:
            self._unexplained += 1
        if not self._found and self._unexplained > 1 and self._room > 1:
            self._room //= 2
            self._rebuilds = 0
            log.warning(
                "the engine died again, but of no single request: from now on it gets at most %d "
                "at once", self._room,
            )  # fmt: skip
        self._found = False

    def _convict(self, culprit: EngineRequest, what: str) -> None:
        key, detail = culprit.request_id, verdict(what)
        self._culprits[key], self._found = detail, self._quarantine.waiting(idle=False)
        self._trouble.convict(key, detail)
        self._ready.append(convicted(key, detail))
        self._rebuilds = 0
        log.warning("found what killed the engine: sample %s, now a reject; the rest goes on", key)

    def _rebuild(self, what: str, suspects: Sequence[EngineRequest]) -> None:
        """A new engine that is known to work.

        Raises:
            EngineError: if there have been enough.
        """
        limit = self._limits.max_rebuilds
        while self._rebuilds < limit:
            self._rebuilds += 1
            log.warning(
                "the engine died with %d requests in it (%s); rebuilding it, %d of at most %d in "
                "a row (engine.max_rebuilds)", len(suspects), what, self._rebuilds, limit,
            )  # fmt: skip
            try:
                self._renew()
                self.doing = Doing("work", self._now())
                if is_alive(self._engine, suspects[0], self._limits.hang_seconds):
                    return
                what = "a new engine did not even answer a harmless request"
            except EngineError as error:
                what = str(error)
            finally:
                self.doing = Doing("idle", self._now())
        raise EngineError(
            f"the engine could not be kept alive: {what}; rebuilt {self._rebuilds} times in a row "
            f"(engine.max_rebuilds = {limit}). What is committed stays, run it again to go on"
        ) from None

    def _renew(self) -> None:
        self.doing = Doing("start", self._now())
        self._past = self.caches
        self._engine.close()
        self._engine, self._worked = self._factory(), 0
        self._info = self._engine.info


@dataclass(frozen=True, slots=True)
class SupervisedFactory:
    """Starts a supervised engine; picklable if its parts are."""

    factory: EngineFactory
    limits: EngineLimits
    trouble: Trouble

    def __call__(self) -> SupervisedEngine:
        """Start the engine, in the thread that will own it.

        Raises:
            ConfigError, EngineError: what the engine's own factory raises: a first start that
                fails is not tried again.
        """
        return SupervisedEngine(self.factory, self.limits, self.trouble)
