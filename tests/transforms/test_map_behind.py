"""Work behind the engine: it never waits, nothing is lost, nothing is done twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.prefetch import map_behind


@given(st.lists(st.none() | st.integers(), max_size=30), st.integers(1, 4))
def test_every_item_has_its_result_in_order(items: list[int | None], depth: int) -> None:
    found = list(map_behind(lambda x: x * 2, items, depth, "behind"))
    assert found == [x * 2 for x in items if x is not None]


def test_the_source_goes_on_while_the_work_lasts() -> None:
    go_on = threading.Event()

    def source() -> Iterator[str | None]:
        yield "slow"
        for _ in range(5):
            yield None
        go_on.set()  # reached although the work on "slow" has not ended
        yield None

    def work(item: str) -> str:
        assert go_on.wait(10)
        return item

    assert list(map_behind(work, source(), 2, "behind")) == ["slow"]


def test_results_come_before_the_source_ends() -> None:
    def source() -> Iterator[int | None]:
        yield 1
        while not found:
            yield None
        yield 2

    found: list[int] = []
    found.extend(map_behind(lambda x: x, source(), 2, "behind"))
    assert found == [1, 2]


def test_no_more_than_the_depth_waits() -> None:
    gate, brought = threading.Event(), []

    def source() -> Iterator[int]:
        for number in range(6):
            brought.append(number)
            yield number

    results = map_behind(lambda x: gate.wait(10) and x, source(), 2, "behind")
    threading.Timer(0.3, lambda: (seen.append(len(brought)), gate.set())).start()
    seen: list[int] = []
    assert list(results) == list(range(6))
    assert seen == [3]  # two wait, and the third is held back


def test_what_was_brought_before_a_failure_is_finished() -> None:
    def source() -> Iterator[int]:
        yield from (1, 2, 3)
        raise RuntimeError("the engine died")

    results = map_behind(lambda x: x, source(), 3, "behind")
    assert [next(results), next(results), next(results)] == [1, 2, 3]
    with pytest.raises(RuntimeError, match="the engine died"):
        next(results)


def test_an_error_of_the_work_comes_in_its_place() -> None:
    results = map_behind(lambda x: 6 // x, [3, 2, 0, 1], 4, "behind")
    assert [next(results), next(results)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_error_of_the_source_is_not_hidden_by_one_of_the_work() -> None:
    gate = threading.Event()

    def source() -> Iterator[int]:
        yield 1
        gate.set()
        raise RuntimeError("the engine died")

    def work(item: int) -> int:
        gate.wait(10)
        raise OSError(f"no room for {item}")

    with pytest.raises(RuntimeError, match="the engine died") as found:
        list(map_behind(work, source(), 2, "behind"))
    assert str(found.value.__cause__) == "no room for 1"


def test_a_consumer_that_leaves_drops_what_was_not_begun() -> None:
    done: list[int] = []
    brought, second, gate = threading.Event(), threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        yield from (1, 2, 3)
        brought.set()

    def work(item: int) -> int:
        brought.wait(10)
        if item == 2:
            second.set()
            gate.wait(10)
        done.append(item)
        return item

    results = map_behind(work, source(), 3, "behind")
    assert next(results) == 1
    assert second.wait(10)
    threading.Timer(0.2, gate.set).start()
    results.close()
    assert done == [1, 2]
    assert not [t for t in threading.enumerate() if t.name.startswith("behind")]
