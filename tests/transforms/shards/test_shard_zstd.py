"""Compressed tars: frames, cuts, damage, and starting in the middle."""

import gzip
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_fixtures import png, problems, read_all, screens, sidecar, tar_bytes, write, zstd

from schemas.codes import RejectReason
from schemas.errors import StorageError
from transforms.shards import RawScreen
from transforms.shards.gzip_stream import GzipStream, gzip_points
from transforms.shards.zstd_stream import ZstdStream

A, B, C = png(16, 12), png(20, 12, (0, 99, 0)), png(24, 12, (0, 0, 99))
FILES = [("a.png", A), ("a.json", sidecar("Guardar")), ("b.png", B), ("c.png", C)]
SKIPPABLE = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hola!"


@pytest.mark.parametrize("frame_bytes", [0, 700, 512])
@pytest.mark.parametrize("name", ["x.tar.zst", "x.tzst", "x.tar", "x.tar.gz"])
def test_a_zstd_tar_is_read_whatever_its_name_and_frames(
    tmp_path: Path, frame_bytes: int, name: str
) -> None:
    path = write(tmp_path / name, zstd(tar_bytes(FILES), frame_bytes))
    assert [(s.data, s.sidecar) for s in screens(path)] == [
        (A, sidecar("Guardar")),
        (B, None),
        (C, None),
    ]
    assert problems(path) == []


def test_frames_that_are_to_be_skipped_are(tmp_path: Path) -> None:
    whole = tar_bytes(FILES)
    data = SKIPPABLE + zstd(whole[:1000]) + SKIPPABLE + zstd(whole[1000:]) + SKIPPABLE
    assert [s.data for s in screens(write(tmp_path / "x.tar.zst", data))] == [A, B, C]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([0, 600]))
def test_a_cut_zstd_tar_keeps_what_came_before_and_says_so(
    data: st.DataObject, frame_bytes: int
) -> None:
    whole = zstd(tar_bytes([("a.png", A), ("b.png", B), ("c.png", C)]), frame_bytes)
    cut = data.draw(st.integers(10, len(whole) - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "cut.tar.zst", whole[:cut])
        pairs = [(s.member.name, s.data) for s in read_all(path) if isinstance(s, RawScreen)]
        assert pairs == [("a.png", A), ("b.png", B), ("c.png", C)][: len(pairs)]
        assert {reason for _, reason in problems(path)} <= {RejectReason.SHARD_TRUNCATED}
        assert problems(path) or len(pairs) == 3


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([zstd, gzip.compress]))
def test_damage_never_ends_the_job(data: st.DataObject, compress: Callable[[bytes], bytes]) -> None:
    whole = bytearray(compress(tar_bytes([("a.png", A), ("b.png", B), ("c.png", C)])))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        read_all(write(Path(folder) / "d.tar", bytes(whole)))


def noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


class Counting(io.BytesIO):
    """Counts the bytes that are read of it."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2_000_000), min_size=1, max_size=8), st.sampled_from([0, 250_000]))
def test_a_zstd_stream_is_where_it_was_told_to_go(offsets: list[int], frame_bytes: int) -> None:
    plain = noise(1_500_000) + bytes(500_000)
    stream = ZstdStream(io.BytesIO(zstd(plain, frame_bytes)))
    for offset in offsets:
        assert stream.seek(offset) == offset
        data = stream.read(1000)
        assert data == plain[offset : offset + len(data)]
        assert bool(data) == (offset < len(plain))


def test_points_let_another_stream_start_in_the_middle() -> None:
    plain, wanted = noise(20 * 2**20), 17 * 2**20
    zipped, framed = gzip.compress(plain, 1), zstd(plain, 4 * 2**20)
    first = ZstdStream(io.BytesIO(framed))
    first.seek(len(plain))
    files = Counting(zipped), Counting(framed)
    streams: list[GzipStream | ZstdStream] = [
        GzipStream(files[0], len(zipped), gzip_points(io.BytesIO(zipped), len(zipped))),
        ZstdStream(files[1], first.points()),
    ]
    for file, stream in zip(files, streams, strict=True):
        stream.seek(wanted)
        assert stream.read(10) == plain[wanted : wanted + 10]
        assert file.taken < len(plain) / 3


def test_a_frame_of_zeros_is_read_in_small_blocks() -> None:
    stream = ZstdStream(io.BytesIO(zstd(bytes(2**28))))
    assert len(stream.read(2**28)) <= 128 * 2**10
    assert stream.seek(2**28 - 5) == 2**28 - 5
    assert stream.read(10) == bytes(5)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("harm", ["nothing", "error"])
def test_a_gzip_file_that_gives_nothing_any_more_ends_the_read(harm: str) -> None:
    plain = noise(12 * 2**20)
    zipped = gzip.compress(plain, 1)

    class Failing(io.BytesIO):
        broken = False

        def read(self, size: int | None = -1) -> bytes:
            if self.broken and harm == "error":
                raise StorageError("no answer")
            return b"" if self.broken else super().read(size)

    file = Failing(zipped)
    stream = GzipStream(file, len(zipped), gzip_points(io.BytesIO(zipped), len(zipped)))
    file.broken = True
    with pytest.raises(StorageError if harm == "error" else OSError):
        stream.seek(11 * 2**20)
        stream.read(10)
    file.broken = False
    stream.seek(11 * 2**20)
    assert stream.read(10) == plain[11 * 2**20 :][:10]
