"""The two that are compared: raw `vllm.LLM.chat` on decoded images, and the job end to end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pipeline.annotate import annotate_here
from pipeline.claim import claim_plan
from pipeline.config import JobConfig
from pipeline.copies import with_copies
from pipeline.plan import make_plan
from pipeline.settings import PREFETCH_SCREENS, worker_settings
from schemas.caches import CacheCounts
from schemas.records import Answer
from transforms.ask import compose
from transforms.engines.base import Engine, EngineInfo, EngineRequest
from transforms.engines.holder import release_engine
from transforms.engines.vllm import VllmEngine
from transforms.engines.vllm_whole import chat_whole
from transforms.infer import IDLE_WAIT
from transforms.load import decode, read
from transforms.prefetch import Prefetch
from transforms.work import Asked


class KeptEngine:
    """An engine that outlives the job that uses it: every round has the same one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def info(self) -> EngineInfo:
        """What the engine is."""
        return self._engine.info

    @property
    def steps(self) -> int:
        """Signs of life of the engine."""
        return self._engine.steps

    @property
    def caches(self) -> CacheCounts:
        """Of the engine, since it started."""
        return self._engine.caches

    def submit(self, request: EngineRequest) -> None:
        """Hand over one request."""
        self._engine.submit(request)

    def collect(self) -> list[Answer]:
        """Answers that are finished."""
        return self._engine.collect()

    def close(self) -> None:
        """Stay open."""


@dataclass(frozen=True, slots=True)
class Round:
    """One system on one workload.

    Attributes:
        seconds: wall time.
        cpu_seconds: of this process, all threads; the engine's too where it runs in it.
        samples: requests answered.
        output_tokens: of all answers; `cached_tokens`: of the prompts, not computed again.
    """

    seconds: float
    cpu_seconds: float
    samples: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


def composed_requests(config: JobConfig) -> list[EngineRequest]:
    """Everything the job will ask, images decoded and resized, in its order."""
    return list(compose_requests(config))


def compose_requests(config: JobConfig) -> Iterator[EngineRequest]:
    """The same one after another, a few screens ahead in threads."""
    plan = make_plan(config)
    settings = worker_settings(config, plan)
    with ThreadPoolExecutor(settings.decode_threads) as pool:
        decoded = decode(read(plan.units, settings.load), settings.load, pool)
        for event in compose(decoded, settings.compose, pool):
            if isinstance(event, Asked):
                yield from (ask.request for ask in event.asks)


def raw_round(engine: VllmEngine, requests: Sequence[EngineRequest]) -> Round:
    """One call with everything in memory: the limit."""
    started, cpu = time.monotonic(), time.process_time()
    said = chat_whole(engine, requests)
    return Round(
        time.monotonic() - started,
        time.process_time() - cpu,
        len(said.texts),
        said.prompt_tokens,
        said.cached_tokens,
        said.output_tokens,
    )


def job_round(engine: Engine, config: JobConfig) -> Round:
    """The job from the listing of its shard to the last commit record.

    The stages run as they do on a worker, without a Beam runner around them, whose start is paid
    once a run, and without a report.

    Args:
        engine: owned by the calling thread.
        config: with a dataset that does not exist yet.
    """
    started, cpu = time.monotonic(), time.process_time()
    plan = make_plan(config)
    settings = worker_settings(config, plan, lambda: KeptEngine(engine))
    claim_plan(plan, settings)
    plan = with_copies(plan, config, settings)
    try:
        lots = plan.lots(frozenset(), config.input.lot_units)
        records = [record for lot in lots for record in annotate_here(lot, settings)]
    finally:
        release_engine()
    return Round(
        time.monotonic() - started,
        time.process_time() - cpu,
        sum(record.counts.samples for record in records),
        sum(record.counts.prompt_tokens for record in records),
        sum(record.worker.cached_tokens for record in records),
        sum(record.counts.output_tokens for record in records),
    )


def fed_round(engine: Engine, requests: Iterable[EngineRequest]) -> Round:
    """Requests fed as `infer` feeds those of a job, made ahead in a thread; nothing is written.

    Raises:
        EngineError: when the engine cannot go on.
    """
    started, cpu = time.monotonic(), time.process_time()
    answers: list[Answer] = []
    submitted = 0
    ahead = Prefetch(requests, PREFETCH_SCREENS)
    try:
        while not ahead.exhausted or len(answers) < submitted:
            while submitted - len(answers) < engine.info.max_in_flight:
                request = ahead.poll(0.0 if submitted > len(answers) else IDLE_WAIT)
                if request is None:
                    break
                engine.submit(request)
                submitted += 1
            answers += engine.collect()
    finally:
        ahead.close()
    return Round(
        time.monotonic() - started,
        time.process_time() - cpu,
        sum(answer.error_reason is None for answer in answers),
        sum(answer.prompt_tokens for answer in answers),
        sum(answer.cached_tokens for answer in answers),
        sum(one.token_count for answer in answers for one in answer.completions),
    )
