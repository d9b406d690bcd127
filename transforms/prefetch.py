"""Work ahead of the engine and behind it: ordered maps in threads, a bounded background reader."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from schemas.errors import DeadlineError

ITEM_SECONDS = 600.0
"""Longest wait for one screen to be decoded or resized: a thousand times what a large one takes."""

ROOM_SECONDS = 0.02
"""Between two looks whether the consumer has made room."""

CLOSE_SECONDS = 60.0
"""Longest wait for a reader that was told to stop; its store has shorter limits of its own."""

A = TypeVar("A")
B = TypeVar("B")


def weightless(_: object) -> int:
    """Items that are bounded by their number alone."""
    return 0


def parallel_flat_map(
    executor: Executor,
    function: Callable[[A], Iterable[B]],
    items: Iterable[A],
    ahead: int,
    weigh: Callable[[A], int] = weightless,
    most: int | None = None,
) -> Iterator[B]:
    """`function` over `items` on a pool, results in the order of `items`, at most `ahead` waiting.

    Pillow and zlib release the GIL, so threads are enough for decoding and resizing.

    Args:
        executor: the pool.
        function: called in its threads.
        items: read in the caller's thread.
        ahead: most items waiting.
        weigh: what an item weighs.
        most: weight of the waiting ones at most; one always passes.

    Raises:
        DeadlineError: if one item takes longer than `ITEM_SECONDS`.
    """
    waiting: deque[tuple[int, Future[Iterable[B]]]] = deque()
    for item in items:
        weight = 0 if most is None else weigh(item)
        while waiting and most is not None and sum(w for w, _ in waiting) + weight > most:
            yield from _result(waiting.popleft()[1])
        waiting.append((weight, executor.submit(function, item)))
        if len(waiting) >= ahead:
            yield from _result(waiting.popleft()[1])
    while waiting:
        yield from _result(waiting.popleft()[1])


def _result(future: Future[Iterable[B]]) -> Iterable[B]:
    try:
        return future.result(ITEM_SECONDS)
    except TimeoutError:
        if future.done():  # the work's own error, not ours
            raise
        raise DeadlineError(
            f"one screen was not decoded or resized within {ITEM_SECONDS:g} s"
        ) from None


def map_behind(
    function: Callable[[A], B], items: Iterable[A | None], depth: int, name: str
) -> Iterator[B]:
    """`function` over `items` in one thread behind the consumer, results in the order of `items`.

    Results are handed on as soon as `items` brings something, an item or None. Only when `depth`
    items wait is the next one held back. When `items` fails, what it brought before is finished
    first; what was not begun when the consumer leaves is dropped.

    Args:
        function: called in that thread only.
        items: None gives time to look for results, and nothing else.
        depth: items that may wait for the thread, at least 1.
        name: of the thread.

    Raises:
        Exception: whatever `function` raised, in the place of its result, or `items`.
    """
    waiting: deque[Future[B]] = deque()
    pool, source = ThreadPoolExecutor(1, name), _Until(items)
    try:
        for item in source:
            if item is not None:
                if len(waiting) >= depth:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(function, item))
            while waiting and waiting[0].done():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except Exception as error:
        if source.error is not None:
            raise source.error from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if source.error is not None:
        raise source.error


class _Until(Generic[A]):
    """Iterates a source until it ends or fails, and keeps its error for later."""

    def __init__(self, source: Iterable[A]) -> None:
        self._source = source
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[A]:
        try:
            yield from self._source
        except Exception as error:  # noqa: BLE001 - raised by whoever iterates, once it is ready
            self.error = error


class _End:
    """The producer is done, or died of `error`."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Prefetch(Generic[A]):
    """Iterates a source in a thread of its own, at most `depth` items ahead of the consumer.

    Nor may more than `most` wait, as `weigh` weighs them; one item always passes.

    The consumer is the thread that owns the engine: `poll` never blocks, so that it can go on
    stepping the engine while the next screens are read and decoded. An error in the source is
    raised in the consumer, after the items that came before it.
    """

    def __init__(
        self,
        source: Iterable[A],
        depth: int,
        weigh: Callable[[A], int] = weightless,
        most: int | None = None,
    ) -> None:
        self._queue: queue.Queue[A | _End] = queue.Queue(maxsize=depth)
        self._weigh, self._most = weigh, most
        self._put_in = self._taken_out = 0
        self._stopped = threading.Event()
        self._end: _End | None = None
        self._thread = threading.Thread(
            target=self._produce, args=(source,), name="pantalla-prefetch", daemon=True
        )
        self._thread.start()

    @property
    def exhausted(self) -> bool:
        """Whether the source is done and everything of it was handed out."""
        return self._end is not None

    def poll(self, timeout: float = 0.0) -> A | None:
        """The next item, or None when there is none within `timeout` seconds.

        Raises:
            Exception: whatever the source raised.
        """
        if self._end is not None:
            return None
        try:
            item = self._queue.get(block=timeout > 0, timeout=timeout or None)
        except queue.Empty:
            return None
        if not isinstance(item, _End):
            if self._most is not None:
                self._taken_out += self._weigh(item)
            return item
        self._end = item
        if item.error is not None:
            raise item.error
        return None

    def close(self) -> None:
        """Stop the producer and wait for it, though not for ever; unread items are dropped."""
        self._stopped.set()
        until = time.monotonic() + CLOSE_SECONDS
        while self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(0.05)
            with contextlib.suppress(queue.Empty):
                self._queue.get_nowait()

    def _produce(self, source: Iterable[A]) -> None:
        end = _End()
        try:
            for item in source:
                if not self._wait_for_room(item) or not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - carried to the consumer, which raises it
            end = _End(error)
        self._put(end)

    def _wait_for_room(self, item: A) -> bool:
        """Whether there is any before the consumer leaves; each thread counts what it does."""
        if self._most is None:
            return True
        weight = self._weigh(item)
        while (waiting := self._put_in - self._taken_out) and waiting + weight > self._most:
            if self._stopped.wait(ROOM_SECONDS):
                return False
        self._put_in += weight
        return True

    def _put(self, item: A | _End) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
