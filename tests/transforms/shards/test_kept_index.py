"""Indexes kept beside a dataset: made once, believed only when they fit, never in the way."""

import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest
from s3_server import S3Server
from shard_fixtures import only_shard, parquet_bytes, png, sidecar, tar_bytes, write, zstd

from schemas.errors import StorageError
from schemas.records import Reject, Shard, Unit
from transforms.shards import (
    INDEX,
    IndexStore,
    RawScreen,
    ShardIndex,
    index_shard,
    list_shards,
    read_unit,
    split_units,
)
from transforms.shards.held import BENCH
from transforms.shards.kept import MIN_BYTES
from transforms.storage import storage_for
from transforms.storage.local import LocalStorage
from transforms.storage.s3_reader import RangeReader

IMAGE_BYTES = 2**19
COUNT = 24
PACK: dict[str, Callable[[bytes], bytes]] = {
    "x.tar": bytes,
    "x.tgz": lambda data: gzip.compress(data, 1),
    "x.tar.zst": lambda data: zstd(data, 3 * 2**20),
}


def image(number: int) -> bytes:
    """A picture of half a megabyte that no compression makes smaller."""
    return png(16 + number, 12) + random.Random(number).randbytes(IMAGE_BYTES)


def files() -> list[tuple[str, bytes]]:
    """Images with their sidecars, except that some sidecars lie at the very end."""
    near = [(f"{i}.png", image(i)) for i in range(COUNT)]
    for i in range(0, COUNT, 2):
        near.insert(near.index((f"{i}.png", image(i))), (f"{i}.json", sidecar(f"Botón {i}")))
    return [*near, *((f"{i}.json", sidecar(f"Botón {i}")) for i in range(1, COUNT, 2))]


@pytest.fixture(scope="module")
def plain() -> bytes:
    return tar_bytes(files())


@pytest.fixture
def store(tmp_path: Path) -> IndexStore:
    return IndexStore(f"{tmp_path}/datos", LocalStorage())


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of all reads from local files."""
    sizes: list[int] = []
    original = LocalStorage.open

    class Counting(io.RawIOBase):
        def __init__(self, file: BinaryIO) -> None:
            super().__init__()
            self.file = file

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def seek(self, offset: int, whence: int = 0) -> int:
            return self.file.seek(offset, whence)

        def tell(self) -> int:
            return self.file.tell()

        def close(self) -> None:
            self.file.close()
            super().close()

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            data = self.file.read(len(buffer))
            buffer[: len(data)] = data
            sizes.append(len(data))
            return len(data)

    def counting(self: LocalStorage, uri: str, version: str = "", read_ahead: int = 0) -> BinaryIO:
        return io.BufferedReader(Counting(original(self, uri)), 64 * 2**10)  # type: ignore[return-value]

    monkeypatch.setattr(LocalStorage, "open", counting)
    return sizes


def put_aside_readers() -> None:
    """As in a new process: nothing is open from before."""
    with BENCH._lock:
        for _, reader in BENCH._waiting:
            reader.close()
        BENCH._waiting.clear()


@pytest.fixture(autouse=True)
def no_readers() -> Iterator[None]:
    put_aside_readers()
    yield
    put_aside_readers()


def units(shard: Shard, index: ShardIndex) -> list[Unit]:
    return split_units(shard, index, 4)


def datas(unit: Unit, store: IndexStore | None) -> list[tuple[bytes, bytes | None]]:
    items = list(read_unit(unit, None, store))
    assert not [item for item in items if isinstance(item, Reject)]
    return [(item.data, item.sidecar) for item in items if isinstance(item, RawScreen)]


@pytest.mark.parametrize("name", PACK)
def test_a_second_run_and_a_unit_in_the_middle_start_at_once(
    tmp_path: Path, plain: bytes, store: IndexStore, taken: list[int], name: str
) -> None:
    shard = only_shard(write(tmp_path / name, PACK[name](plain)))
    first = index_shard(shard, None, store)
    store.keep(shard, first)
    taken.clear()
    again = index_shard(shard, None, store)
    assert sum(taken) == 0
    assert (again.members, again.problems) == (first.members, first.problems)
    put_aside_readers()
    last = units(shard, again)[-1]
    expected = [(image(i), sidecar(f"Botón {i}")) for i in range(COUNT - 4, COUNT)]
    assert datas(last, store) == expected
    cost = sum(taken)
    assert cost < shard.byte_size / 2
    put_aside_readers()
    assert datas(last, None) == expected
    assert (sum(taken) - cost > shard.byte_size / 2) == (name != "x.tar")


@pytest.mark.parametrize("name", ["x.tgz", "x.tar.zst"])
def test_units_in_order_decompress_a_shard_once(
    tmp_path: Path, taken: list[int], name: str
) -> None:
    """Also without a kept index, and with sidecars far from their images: twice then."""
    data = zstd(tar_bytes(files())) if name == "x.tar.zst" else PACK[name](tar_bytes(files()))
    shard = only_shard(write(tmp_path / name, data))
    index = index_shard(shard)
    taken.clear()
    for number, unit in enumerate(units(shard, index)):
        got = datas(unit, None)
        wanted = range(4 * number, 4 * number + 4)
        assert got == [(image(i), sidecar(f"Botón {i}")) for i in wanted]
    assert sum(taken) < 2.5 * len(data)


def test_a_shard_that_changed_is_gone_through_again(
    tmp_path: Path, plain: bytes, store: IndexStore
) -> None:
    path = tmp_path / "x.tar"
    shard = only_shard(write(path, plain))
    store.keep(shard, index_shard(shard, None, store))
    other = tar_bytes([("otra.png", image(1)), *files()[2:]])
    same_size = other + bytes(max(0, len(plain) - len(other)))
    path.write_bytes(same_size[: len(plain)])
    os.utime(path, ns=(1, 1))
    found = index_shard(only_shard(str(path)), None, store)
    assert found.members[0].name == "otra.png"


@pytest.mark.parametrize("harm", ["cut", "flipped", "foreign", "empty", "gone"])
@pytest.mark.parametrize("kind", ["members", "points"])
def test_what_does_not_fit_is_made_again(
    tmp_path: Path, plain: bytes, store: IndexStore, harm: str, kind: str
) -> None:
    shard = only_shard(write(tmp_path / "x.tgz", PACK["x.tgz"](plain)))
    first = index_shard(shard, None, store)
    store.keep(shard, first)
    (kept,) = Path(store.dataset, INDEX).glob(f"*.{kind}")
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 0xFF
    wrong = {
        "cut": kept.read_bytes()[:-9],
        "flipped": bytes(data),
        "foreign": b"PAR1",
        "empty": b"",
    }
    if harm == "gone":
        kept.unlink()
    else:
        kept.write_bytes(wrong[harm])
    again = index_shard(shard, None, store)
    assert (again.members, again.problems) == (first.members, first.problems)
    assert again.costly == (kind == "members")
    assert len(datas(units(shard, again)[-1], store)) == 4
    store.keep(shard, again)
    assert not index_shard(shard, None, store).costly


def test_an_index_copied_from_another_shard_is_not_believed(
    tmp_path: Path, plain: bytes, store: IndexStore
) -> None:
    one = only_shard(write(tmp_path / "1.tar", plain))
    two = only_shard(write(tmp_path / "2.tar", plain[512:] + bytes(512)))
    store.keep(one, index_shard(one))
    store.keep(two, index_shard(two))
    first, second = Path(store.dataset, INDEX).glob("*.members")
    first.write_bytes(second.read_bytes())
    for shard in (one, two):
        assert index_shard(shard, None, store).members == index_shard(shard).members


def test_small_shards_and_folders_keep_none(tmp_path: Path, store: IndexStore) -> None:
    write(tmp_path / "f/a.png", png())
    for path in (write(tmp_path / "s.tar", tar_bytes([("a.png", png())])), f"{tmp_path}/f"):
        shard = only_shard(path)
        assert shard.byte_size < MIN_BYTES
        store.keep(shard, index_shard(shard, None, store))
    assert not Path(store.dataset).exists()


def test_lists_that_had_to_be_counted_are_kept(tmp_path: Path, store: IndexStore) -> None:
    rows = pa.array([[image(i), image(i + 1)] for i in range(10)], pa.list_(pa.binary()))
    shard = only_shard(write(tmp_path / "x.parquet", parquet_bytes({"images": rows})))
    first = index_shard(shard, None, store)
    store.keep(shard, first)
    again = index_shard(shard, None, store)
    assert again.members == first.members
    assert (first.costly, again.costly) == (True, False)


@pytest.mark.s3
def test_on_s3_the_index_is_an_object_and_spares_the_shard(
    s3: S3Server, plain: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("indices", {"t/x.tgz": PACK["x.tgz"](plain)})
    storage = storage_for("s3://indices/datos", s3.endpoint)
    store = IndexStore("s3://indices/datos", storage)
    (shard,) = list_shards(["s3://indices/t/x.tgz"], s3.endpoint)
    first = index_shard(shard, s3.endpoint, store)
    store.keep(shard, first)
    kept = [stat.uri.rpartition(".")[2] for stat in storage.list("s3://indices/datos")]
    assert kept == ["members", "points"]
    fetched: list[int] = []
    original = RangeReader.readinto

    def counting(self: RangeReader, buffer: bytearray | memoryview) -> int:
        fetched.append(original(self, buffer))
        return fetched[-1]

    monkeypatch.setattr(RangeReader, "readinto", counting)
    again = index_shard(shard, s3.endpoint, store)
    assert (again.members, again.costly) == (first.members, False)
    assert sum(fetched) < shard.byte_size / 100
    items = list(read_unit(units(shard, again)[-1], s3.endpoint, store))
    assert [i.data for i in items if isinstance(i, RawScreen)] == [
        image(i) for i in range(COUNT - 4, COUNT)
    ]


@pytest.mark.s3
def test_of_a_tar_on_s3_only_ranges_are_fetched(
    s3: S3Server, plain: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("rangos", {"x.tar": plain})
    (shard,) = list_shards(["s3://rangos/x.tar"], s3.endpoint)
    fetched: list[int] = []
    original = RangeReader.readinto

    def counting(self: RangeReader, buffer: bytearray | memoryview) -> int:
        fetched.append(original(self, buffer))
        return fetched[-1]

    monkeypatch.setattr(RangeReader, "readinto", counting)
    index = index_shard(shard, s3.endpoint)
    assert sum(fetched) < shard.byte_size / 3, "headers alone"
    fetched.clear()
    unit = split_units(shard, ShardIndex(index.members[8:11]), 4)[0]
    items = [item for item in read_unit(unit, s3.endpoint) if isinstance(item, RawScreen)]
    assert [item.data for item in items] == [image(8), image(9), image(10)]
    assert sum(fetched) < 5 * len(image(8))


@pytest.mark.parametrize("name", ["x.tgz", "x.tar.zst"])
def test_a_store_that_fails_is_not_taken_for_a_damaged_shard(
    tmp_path: Path,
    plain: bytes,
    store: IndexStore,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    shard = only_shard(write(tmp_path / name, PACK[name](plain)))
    index = index_shard(shard)
    store.keep(shard, index)
    original = LocalStorage.open

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise StorageError(f"{name}: no answer")

    def failing(self: LocalStorage, uri: str, version: str = "", read_ahead: int = 0) -> BinaryIO:
        return Failing(Path(uri).read_bytes()) if uri == shard.uri else original(self, uri)

    monkeypatch.setattr(LocalStorage, "open", failing)
    with pytest.raises(StorageError, match="no answer"):
        list(read_unit(units(shard, index)[-1], None, store))
    with pytest.raises(StorageError, match="no answer"):
        index_shard(shard)
