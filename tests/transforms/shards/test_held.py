"""Readers that wait for the next unit."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.shards.held import Bench


class Reader:
    """Goes forward only, and knows whether it was closed."""

    def __init__(self) -> None:
        self.place = 0
        self.closed = False
        self.busy = False

    def tell(self) -> int:
        return self.place

    def close(self) -> None:
        assert not self.closed
        self.closed = True


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 100)), max_size=40))
def test_a_reader_only_goes_forward_and_no_more_than_the_room_stay_open(
    visits: list[tuple[str, int]],
) -> None:
    bench, made = Bench(room=2), list[Reader]()

    def start() -> Reader:
        made.append(Reader())
        return made[-1]

    for key, place in visits:
        with bench.lend(key, place, start) as reader:
            assert not reader.closed
            assert reader.place <= place
            reader.place = place + 1
        assert sum(not reader.closed for reader in made) <= 2


def test_units_in_order_share_one_reader() -> None:
    bench, made = Bench(), list[Reader]()

    def start() -> Reader:
        made.append(Reader())
        return made[-1]

    for place in range(0, 100, 10):
        with bench.lend("x", place, start) as reader:
            reader.place = place + 10
    assert len(made) == 1


def test_a_reader_that_failed_is_closed_and_never_lent_again() -> None:
    bench, broken = Bench(), Reader()
    with pytest.raises(ValueError, match="roto"), bench.lend("x", 0, lambda: broken):
        raise ValueError("roto")
    assert broken.closed
    with bench.lend("x", 0, Reader) as other:
        assert other is not broken


def test_no_reader_is_lent_to_two_threads_at_once() -> None:
    bench, clashes = Bench(), list[Reader]()

    def work() -> None:
        for _ in range(200):
            with bench.lend("x", 0, Reader) as reader:
                if reader.busy:
                    clashes.append(reader)
                reader.busy = True
                reader.busy = False

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []
