"""A small version of `python -m tests.benchmark.flat_memory`."""

from tests.benchmark.flat_memory import measure


def test_b079_peak_memory_does_not_grow_with_the_number_of_screens() -> None:
    few, many = measure(100), measure(1_000)
    assert many < 1.1 * few
