"""A small version of `python -m tests.benchmark.big_shard`: memory and starts do not grow."""

from pathlib import Path

from tests.benchmark.big_shard import measure


def test_a_large_tar_needs_little_memory_and_its_last_unit_starts_at_once(tmp_path: Path) -> None:
    figures = measure("tar", 640 * 2**20, tmp_path)
    assert figures.job.screens == figures.full_read.screens == 80
    assert figures.above_idle < 300 * 2**20
    assert figures.full_read.read_bytes > 640 * 2**20
    assert figures.share < 0.02
