"""Tells whoever listens in this process that a unit was committed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schemas.commits import CommitRecord

log = logging.getLogger(__name__)

_listeners: list[Callable[[CommitRecord], None]] = []


def announce(record: CommitRecord) -> CommitRecord:
    """Pass a commit record on to the listeners; without any (on a remote worker) log a line."""
    for listener in _listeners:
        listener(record)
    if not _listeners:
        counts = record.counts
        log.info("unit %s: %d screens, %d samples", record.unit_id, counts.screens, counts.samples)
    return record


def is_listened_to() -> bool:
    """Whether this is the job's own process, and not one that a runner started elsewhere."""
    return bool(_listeners)


@contextmanager
def listening(listener: Callable[[CommitRecord], None]) -> Iterator[None]:
    """Call `listener` for every commit of this process within the block.

    Beam pickles what it runs, so a listener cannot travel inside the graph; a local runner works
    in this process and finds it here.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
