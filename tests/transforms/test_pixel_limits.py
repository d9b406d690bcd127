"""What waits is bounded by memory, and one screen always passes."""

import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from schemas.profile import Sampling
from transforms.engines.base import EngineRequest
from transforms.free_memory import free_memory
from transforms.pixel_limits import (
    PROCESSED,
    STORED,
    ImagesInFlight,
    pixel_limits,
    raw_weight,
    request_weight,
)
from transforms.prefetch import Prefetch, parallel_flat_map

MIB = 2**20


def request(name: str, image_key: str, side: int = 8) -> EngineRequest:
    image = Image.new("RGB", (side, side))
    return EngineRequest(name, image, image_key, "¿?", None, 1, Sampling(), 8, 7, None, "{}")


def group(folder: Path, limit: str, used: str, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in [*(pair.split("=") for pair in (limit, used)), *files.items()]:
        (folder / name.replace("_stat", ".stat")).write_text(text + "\n")


def member_of(root: Path, line: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line + "\n")


def test_the_tightest_group_above_the_process_counts(tmp_path: Path) -> None:
    member_of(tmp_path, "0::/slurm/job/step")
    mount = tmp_path / "sys/fs/cgroup"
    group(mount / "slurm/job/step", "memory.max=max", "memory.current=100")
    group(mount / "slurm/job", f"memory.max={64 * MIB}", f"memory.current={40 * MIB}",
          memory_stat=f"anon 5\ninactive_file {8 * MIB}")  # fmt: skip
    group(mount / "slurm", f"memory.max={900 * MIB}", f"memory.current={100 * MIB}")
    assert free_memory(tmp_path) == 32 * MIB


def test_a_container_of_version_1_sees_its_group_at_the_mount(tmp_path: Path) -> None:
    member_of(tmp_path, "4:cpu,memory:/docker/abc")
    group(tmp_path / "sys/fs/cgroup/memory", f"memory.limit_in_bytes={64 * MIB}",
          f"memory.usage_in_bytes={60 * MIB}")  # fmt: skip
    assert free_memory(tmp_path) == 4 * MIB


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    member_of(tmp_path, "0::/")
    group(tmp_path / "sys/fs/cgroup", f"memory.max={MIB}", f"memory.current={2 * MIB}")
    assert free_memory(tmp_path) == 0


def test_without_groups_the_machine_counts(tmp_path: Path) -> None:
    assert 0 < free_memory(tmp_path) <= psutil.virtual_memory().total
    assert 0 < free_memory() <= psutil.virtual_memory().total


def test_what_is_no_group_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_bytes(b"\nno colons\n0::/caf\xe9\n")
    place = tmp_path / "sys/fs/cgroup"
    place.mkdir(parents=True)
    (place / "memory.max").write_text(f"{4 * MIB}\n")
    (place / "memory.current").write_text(f"{MIB}\n")
    (place / "memory.stat").write_text("\nanon 7\n")
    assert free_memory(tmp_path) == 3 * MIB


def test_half_of_what_is_free_is_ours() -> None:
    limits = pixel_limits(800)
    assert limits.decode == limits.compose == limits.ready == limits.in_flight == 100


def test_a_file_weighs_its_pixels_and_a_broken_one_itself() -> None:
    buffer = io.BytesIO()
    Image.new("L", (20_000, 10_000)).save(buffer, "PNG")
    data = buffer.getvalue()
    assert raw_weight(data) == len(data) + 2 * STORED * 200_000_000
    assert raw_weight(b"no image") == 8
    assert raw_weight(data[:20]) == 20


class Here(Executor):
    """Works at once, and knows what is begun and not handed on."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: list[int] = []

    def submit(  # type: ignore[override]
        self, function: Callable[[int], list[int]], weight: int
    ) -> "Future[list[int]]":
        self.waiting.append(weight)
        assert sum(self.waiting) <= self.most or len(self.waiting) == 1
        future: Future[list[int]] = Future()
        future.set_result(function(weight))
        return future


@given(st.lists(st.integers(0, 100), max_size=30), st.integers(0, 150), st.integers(1, 6))
def test_never_more_than_the_limit_waits_unless_it_is_one_alone(
    weights: list[int], most: int, ahead: int
) -> None:
    pool = Here(most)
    done = []
    for item in parallel_flat_map(pool, lambda w: [w], weights, ahead, lambda w: w, most):
        assert len(pool.waiting) <= ahead
        done.append(pool.waiting.pop(0))
        assert done[-1] == item
    assert done == weights


def test_what_waits_for_the_engine_is_bounded_by_weight() -> None:
    begun: list[int] = []

    def source() -> Iterator[int]:
        for weight in (50, 500, 30, 40, 50):
            begun.append(weight)
            yield weight

    ahead = Prefetch(source(), 8, lambda weight: weight, 100)
    got = []
    while not ahead.exhausted:
        item = ahead.poll(0.2)
        if item is not None:
            got.append(item)
            inside = begun[len(got) : -1]  # the last one begun may be waiting for room
            assert sum(inside) <= 100 or len(inside) == 1
    ahead.close()
    assert got == [50, 500, 30, 40, 50]


def test_a_consumer_that_leaves_frees_a_reader_that_waits_for_room() -> None:
    ahead = Prefetch(iter([500, 500, 500]), 8, lambda weight: weight, 100)
    assert ahead.poll(1.0) == 500
    ahead.close()
    assert not any(thread.name == "pantalla-prefetch" for thread in threading.enumerate())


def test_screens_in_the_engine_are_bounded_and_their_questions_share_them() -> None:
    weight = request_weight(request("r", "a"))
    assert weight == 64 * (STORED + PROCESSED)
    images = ImagesInFlight(2 * weight)
    assert images.take(request("1", "a"))
    assert images.take(request("2", "a"))
    assert images.take(request("3", "b"))
    assert not images.take(request("4", "c"))
    assert images.take(request("5", "b")), "it is held already"
    images.drop("1")
    assert not images.take(request("4", "c"))
    images.drop("2")
    assert images.take(request("4", "c"))


@pytest.mark.parametrize("most", [0, 1])
def test_one_screen_always_passes(most: int) -> None:
    images = ImagesInFlight(most)
    assert images.take(request("1", "a", 512))
    assert not images.take(request("2", "b", 1))
    images.drop("1")
    assert images.take(request("2", "b", 1))
