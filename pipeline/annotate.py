"""One lot on one worker: the eight stages, composed in one place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pipeline.announce import is_listened_to
from pipeline.attend import end_worker_if_stuck
from pipeline.memory import peak_memory_bytes
from pipeline.settings import WorkerSettings
from pipeline.stopping import abandon_requested, stop_requested
from pipeline.turns import Records, in_turn
from schemas.caches import CacheCounts
from schemas.commits import CommitRecord, WorkerStats
from schemas.records import Lot, Unit
from transforms.ask import compose
from transforms.commit import DatasetWriter
from transforms.counts import count_unit
from transforms.engines.holder import HeldEngine, hold_engine
from transforms.free_memory import free_memory
from transforms.infer import infer_in_steps
from transforms.judge import judge
from transforms.load import decode, read
from transforms.pixel_limits import asked_weight, pixel_limits
from transforms.prefetch import Prefetch, map_behind
from transforms.rows import RowSettings, annotation_rows, reject_rows, screen_rows, to_table
from transforms.work import AnsweredUnit

COMMITS_BEHIND = 4
"""Answered units that may wait to be written: a slow store stops no engine unless it stays slow."""


def annotate_lot(lot: Lot, settings: WorkerSettings) -> Iterator[CommitRecord]:
    """Annotate and commit a lot when it is its turn on the process's engine; see `annotate_here`.

    May be called from any thread. Far from the job's own process nobody else sees an engine that is
    stuck: this does, and ends the process.
    """
    far = partial(end_worker_if_stuck, settings.start_seconds)
    watch = _nothing if is_listened_to() else far
    yield from in_turn(partial(annotate_here, lot, settings), watch)


def _nothing() -> None:
    """The job's own process has its own watch."""


def annotate_here(lot: Lot, settings: WorkerSettings) -> Records:
    """Annotate and commit the units of a lot; yields a record as each unit becomes real.

    Reading, decoding and composing run ahead in threads, judging and writing behind in another:
    this thread only feeds the engine, which waits for neither. A unit that is committed already is
    skipped, so any runner may repeat a lot.

    Raises:
        EngineError: if the engine cannot start or go on.
        StorageError: if a part cannot be written.
    """
    if stop_requested():
        return  # before minutes go into an engine that nobody waits for
    held = hold_engine(settings.engine_factory, settings.run_id)
    with ThreadPoolExecutor(settings.decode_threads, "pantalla-decode") as pool:
        units = pending_units(lot.units, settings.writer)
        loaded = read(units, settings.load)
        limits = pixel_limits(free_memory())
        decoded = decode(loaded, settings.load, pool, limits.decode)
        composed = compose(decoded, settings.compose, pool, limits.compose)
        events = Prefetch(composed, settings.prefetch_screens, asked_weight, limits.ready)
        try:
            give_up, most = abandon_requested, limits.in_flight
            steps = infer_in_steps(events, held.engine, held.clock, give_up, most)
            answered = (step and Answered(step, _share(held)) for step in steps)
            finish = partial(commit, settings, settings.row_settings(held.engine.info))
            yield from map_behind(finish, answered, COMMITS_BEHIND, "pantalla-commit")
        finally:
            events.close()


def pending_units(units: Iterable[Unit], writer: DatasetWriter) -> Iterator[Unit]:
    """The units that have no commit record yet, until the job is asked to stop."""
    for unit in units:
        if stop_requested():
            return
        if writer.find(unit.unit_id) is None:
            yield unit


@dataclass(frozen=True, slots=True)
class EngineShare:
    """What the engine spent since the unit before; see `WorkerStats`."""

    busy_seconds: float
    step_seconds: float
    start_seconds: float
    caches: CacheCounts


@dataclass(frozen=True, slots=True)
class Answered:
    """A unit whose last answer is in, and what the engine spent until then."""

    unit: AnsweredUnit
    share: EngineShare


def commit(settings: WorkerSettings, rows: RowSettings, answered: Answered) -> CommitRecord:
    """Judge a unit, write its tables and its commit record. Needs no engine: any thread does.

    Raises:
        StorageError: if a part cannot be written.
        DatasetError: if the dataset is another job's by now.
    """
    unit = judge(answered.unit, settings.judge)
    annotations = annotation_rows(unit, rows)
    tables = {
        "annotations": to_table("annotations", annotations),
        "screens": to_table("screens", screen_rows(unit)),
        "rejects": to_table("rejects", reject_rows(unit)),
    }
    counts = count_unit(unit, len(annotations))
    worker = _worker_stats(answered, rows)
    return settings.writer.commit(unit.unit, tables, counts, worker)


def _share(held: HeldEngine) -> EngineShare:
    start_seconds, held.start_seconds = held.start_seconds, 0.0
    clock = held.clock
    return EngineShare(clock.take(), clock.take_steps(), start_seconds, held.take_caches())


def _worker_stats(answered: Answered, rows: RowSettings) -> WorkerStats:
    unit, share = answered.unit, answered.share
    return WorkerStats(
        engine=rows.engine,
        engine_version=rows.engine_version,
        pid=os.getpid(),
        seconds=time.monotonic() - unit.started,
        engine_busy_seconds=share.busy_seconds,
        engine_step_seconds=share.step_seconds,
        engine_start_seconds=share.start_seconds,
        peak_memory_bytes=peak_memory_bytes(),
        cached_tokens=sum(answer.cached_tokens for answer in unit.answers.values()),
        caches=share.caches,
    )
