"""One workload at rising concurrency: N requests in the engine for N = 1, 2, 4 and so on."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path

from pipeline.bench.agents import STEPS, agent_chains, measured_agents
from pipeline.bench.closed_loop import Chain, ClosedLoop
from pipeline.bench.engine import engine_for
from pipeline.bench.levels import Level, Seen, level_of
from pipeline.bench.peaks import MemoryPeaks, device_meter
from pipeline.bench.systems import compose_requests
from pipeline.bench.workloads import AGENTS, Workload, workload_job
from pipeline.config import JobConfig
from pipeline.settings import DECODE_THREADS
from schemas.errors import ConfigError
from transforms.engines.vllm import VllmEngine
from transforms.engines.vllm_gauges import QUIET_STATS, engine_load
from transforms.engines.vllm_whole import forget_everything
from transforms.profiles.load import load_profile

LEAST_REQUESTS, ROUNDS = 32, 4
"""Requests of a level: `ROUNDS` for each that is in flight, and not fewer than these."""

CLEARLY = 0.8
"""Share of what could run at once below which something holds it back."""

LOOK_SECONDS = 0.2
"""Mean pace at which the engine is asked what it runs: each time takes 3 ms of a busy core."""

ENOUGH_LOOKS = 20
"""Below these, that nothing more was seen running says nothing."""

Source = Callable[[int, int], "Generator[Chain, None, None]"]
"""Gives the chains of a level anew: so many requests at least, for so many in flight."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All levels of one workload on one engine.

    Attributes:
        max_num_seqs: most sequences that the engine runs at once.
        described: what was asked, where the workload's name does not say it.
        price_per_hour: of the machine, in `currency`; None = unknown.
    """

    workload: Workload
    levels: tuple[Level, ...]
    max_num_seqs: int
    described: str
    price_per_hour: float | None
    currency: str

    def is_queued(self, level: Level) -> bool:
        """Whether more is in flight than the engine runs at once, so that the rest waits in it."""
        return level.in_flight * self.workload.k > self.max_num_seqs

    def is_starved(self, level: Level) -> bool:
        """Whether clearly fewer sequences ran at once than were in flight and allowed to."""
        able = min(level.in_flight * self.workload.k, self.max_num_seqs)
        seen = level.seen
        return seen.looks >= ENOUGH_LOOKS and seen.running < CLEARLY * able


def bench_sweep(
    config: JobConfig,
    workload: Workload,
    in_flight: Sequence[int],
    requests: int | None = None,
    status: Callable[[str], None] = lambda _: None,
) -> Sweep:
    """Measure a workload at every level, caches emptied before each.

    Args:
        config: its model, engine arguments, sampling and price are taken.
        workload: what is asked.
        in_flight: the levels.
        requests: of each level that count; None = `ROUNDS` for each in flight.
        status: told when a step begins.

    Raises:
        ConfigError: if the model or the workload is refused.
        EngineError: if the engine does not start, or dies.
        UnansweredError: if a request is refused.
    """
    counted = [counted_requests(level, requests) for level in in_flight]
    most = max(all_requests(*pair) for pair in zip(in_flight, counted, strict=True))
    price, levels = config.cost.machine_hour, []
    status("Starting the engine")
    engine = engine_for(config, (workload,), QUIET_STATS)
    try:
        with tempfile.TemporaryDirectory(prefix="pantalla-sweep-") as folder:
            status(f"{workload.name}: drawing screens")
            source, described = _source(engine, config, workload, most, Path(folder))
            status(f"{workload.name}: {described or 'warming'}")
            warm(engine, source)
            for level, count in zip(in_flight, counted, strict=True):
                status(f"{workload.name}: {level} in flight, {count} requests that count")
                levels.append(_level(engine, source, level, count, price))
        limit = engine.llm.llm_engine.vllm_config.scheduler_config.max_num_seqs
    finally:
        engine.close()
    return Sweep(workload, tuple(levels), limit, described, price, config.cost.currency)


MOST_IN_FLIGHT = 65_536
"""Far more than any engine runs at once; a level of a slip of the finger would take days."""


def parse_levels(text: str) -> tuple[int, ...]:
    """The levels of `1,2,4`.

    Raises:
        ConfigError: if one is no number from 1 to `MOST_IN_FLIGHT`.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    able = (
        part.isdecimal() and len(part) < 9 and 0 < int(part) <= MOST_IN_FLIGHT for part in parts
    )
    if not parts or not all(able):
        said = f"give numbers from 1 to {MOST_IN_FLIGHT}, such as 1,2,4,8"
        raise ConfigError(f"--in-flight {text[:80]}: {said}")
    return tuple(int(part) for part in dict.fromkeys(parts))


def counted_requests(in_flight: int, wanted: int | None) -> int:
    """Requests of a level that count: whole rounds of what is in flight."""
    least = max(LEAST_REQUESTS, ROUNDS * in_flight) if wanted is None else wanted
    return ceil(least / in_flight) * in_flight


def all_requests(in_flight: int, counted: int) -> int:
    """With the ramp, what the last step answers beyond the count, and what is in flight then."""
    return counted + 3 * in_flight


def warm(engine: VllmEngine, source: Source) -> None:
    """Ask a few requests, four at a time: what is compiled once is compiled now."""
    with closing(source(8, 1)) as chains:
        ClosedLoop(engine, islice(chains, 8), 4).finish()


def _source(
    engine: VllmEngine,
    config: JobConfig,
    workload: Workload,
    most: int,
    folder: Path,
) -> tuple[Source, str]:
    if workload == AGENTS:
        agents = measured_agents(engine, load_profile(config.model.profile))

        def of_agents(requests: int, in_flight: int) -> Generator[Chain, None, None]:
            numbers = range(in_flight + ceil(requests / STEPS))
            return agent_chains(agents, numbers, in_flight, DECODE_THREADS)

        return of_agents, str(agents.sizes)
    job = workload_job(config, workload, ceil(most / max(workload.queries, 1)), folder)
    place = job.output.model_copy(update={"dataset": str(folder / "none")})
    job = job.model_copy(update={"output": place})

    def of_job(requests: int, in_flight: int) -> Generator[Chain, None, None]:
        del requests, in_flight  # there are enough for every level
        return ((request,) for request in compose_requests(job))

    return of_job, ""


def _level(
    engine: VllmEngine, source: Source, in_flight: int, counted: int, price: float | None
) -> Level:
    forget_everything(engine)
    watch = _EngineWatch(engine)
    with (
        closing(source(all_requests(in_flight, counted), in_flight)) as chains,
        MemoryPeaks(device_meter()) as peaks,
    ):
        window = ClosedLoop(engine, chains, in_flight, watch.look).run(in_flight, counted)
    seen = Seen(watch.running, watch.looks, watch.preemptions, peaks.host, peaks.device)
    return level_of(window, seen, price)


class _EngineWatch:
    """Keeps the most that the engine ran at once; it looks at no steady pace, as answers come."""

    def __init__(self, engine: VllmEngine) -> None:
        self.running = self.looks = 0
        self._chance = random.Random(0)
        self._engine = engine
        self._next = 0.0
        self._before = engine_load(engine).preemptions

    @property
    def preemptions(self) -> int:
        return engine_load(self._engine).preemptions - self._before

    def look(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._chance.uniform(0, 2 * LOOK_SECONDS)
            self.looks += 1
            self.running = max(self.running, engine_load(self._engine).running)
