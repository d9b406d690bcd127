"""Lots one after the other in the one thread of a process that owns its engine.

Beam hands lots to whatever thread it likes: Flink, Spark, Dataflow and the Job API take another one
for each bundle, and a Dask worker may have several at once. An engine has one owner, and takes all
of a device. So each process has one thread for it, and whoever brings a lot waits for its turn.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial

from schemas.commits import CommitRecord
from transforms.engines.holder import release_engine

log = logging.getLogger(__name__)

GLANCE = 1.0
"""Seconds between two looks at an engine that gives nothing."""

Records = Generator[CommitRecord, None, None]

_Task = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Turns:
    """The thread, and what waits for it."""

    thread: threading.Thread
    tasks: queue.SimpleQueue[_Task]
    free: threading.Event


_lock = threading.Lock()
_turns: list[_Turns] = []


def in_turn(work: Callable[[], Records], watch: Callable[[], None]) -> Iterator[CommitRecord]:
    """What `work` yields, made in the thread that owns the engine.

    Args:
        work: starts, uses and keeps the engine.
        watch: called in the caller's thread every `GLANCE` seconds while nothing comes.

    Raises:
        Exception: whatever `work` or `watch` raised.
    """
    said: queue.SimpleQueue[CommitRecord | _End] = queue.SimpleQueue()
    gone = threading.Event()
    turns = _started()
    if not turns.free.is_set():
        log.info("a lot waits for another one of this process: it has one engine")
    turns.tasks.put(partial(_do, work, said, gone))
    try:
        while not isinstance(item := _next(said, watch), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        gone.set()


def release_in_turn() -> None:
    """Close the process's engine, if there is one, once the lot in work is done or given up."""
    turns = next((found for found in _turns if found.thread.is_alive()), None)
    if turns is None:
        release_engine()
        return
    done: queue.SimpleQueue[CommitRecord | _End] = queue.SimpleQueue()
    turns.tasks.put(partial(_do, _release, done, threading.Event()))
    end = done.get()
    if isinstance(end, _End) and end.error is not None:
        raise end.error


def forget_stuck_thread() -> None:
    """Leave the engine's thread to itself: it will not come back, and nobody must wait for it."""
    with _lock:
        _turns.clear()


def _release() -> Records:
    release_engine()
    yield from ()


def _do(
    work: Callable[[], Records],
    said: queue.SimpleQueue[CommitRecord | _End],
    gone: threading.Event,
) -> None:
    """One turn; nothing is begun for a caller that has gone, and what it left is given up."""
    try:
        if not gone.is_set():
            with contextlib.closing(work()) as records:
                for record in records:
                    said.put(record)
                    if gone.is_set():
                        break
        said.put(_End())
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        said.put(_End(error))


def _next(
    said: queue.SimpleQueue[CommitRecord | _End], watch: Callable[[], None]
) -> CommitRecord | _End:
    while True:
        try:
            return said.get(timeout=GLANCE)
        except queue.Empty:
            watch()


def _started() -> _Turns:
    """The thread of this process; one that was forked away is no more."""
    with _lock:
        if not _turns or not _turns[0].thread.is_alive():
            tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
            free = threading.Event()
            free.set()
            thread = threading.Thread(
                target=_serve, args=(tasks, free), name="pantalla-engine", daemon=True
            )
            thread.start()
            _turns[:] = [_Turns(thread, tasks, free)]
        return _turns[0]


def _serve(tasks: queue.SimpleQueue[_Task], free: threading.Event) -> None:
    while True:
        task = tasks.get()
        free.clear()
        task()
        free.set()
