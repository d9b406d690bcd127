"""Parquet shards."""

import itertools
import json
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shard_fixtures import only_shard, png, read_all, units_of, write

from schemas.codes import RejectReason
from schemas.errors import StorageError
from schemas.records import Reject
from transforms.shards import RawScreen, index_shard, member_of_row, read_member, read_unit
from transforms.storage.local import LocalStorage

A, B, C = png(16, 12), png(20, 12), png(24, 12)
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def save(path: Path, columns: dict[str, pa.Array], rows_per_group: int = 2) -> str:
    pq.write_table(pa.table(columns), path, row_group_size=rows_per_group)
    return str(path)


def images(path: str) -> list[bytes]:
    return [item.data for item in read_all(path) if isinstance(item, RawScreen)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([A, B, C], pa.binary()),
        pa.array([A, B, C], pa.large_binary()),
        pa.array([A, B, C], pa.binary_view()),
        pa.array([A, B, C], pa.binary()).dictionary_encode(),
        pa.array([{"bytes": data, "path": None} for data in (A, B, C)], STRUCT),
    ],
    ids=["binary", "large", "view", "dictionary", "struct"],
)
@pytest.mark.parametrize("name", ["image", "bytes", "captura"])
def test_image_bytes_of_any_arrow_type(tmp_path: Path, column: pa.Array, name: str) -> None:
    path = save(tmp_path / "x.parquet", {"id": pa.array([1, 2, 3]), name: column})
    items = read_all(path)
    assert images(path) == [A, B, C]
    assert [item.member.name for item in items if isinstance(item, RawScreen)] == [
        "row-00000000",
        "row-00000001",
        "row-00000002",
    ]


def test_image_wins_over_other_binary_columns(tmp_path: Path) -> None:
    other = pa.array([b"hash"] * 2)
    path = save(tmp_path / "x.parquet", {"sha": other, "bytes": other, "image": pa.array([A, B])})
    assert images(path) == [A, B]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([json.dumps({"locale": "es-AR"}), None]),
        pa.array([json.dumps({"locale": "es-AR"}), None]).dictionary_encode(),
        pa.array([json.dumps({"locale": "es-AR"}).encode(), None]),
        pa.array([{"locale": "es-AR"}, None]),
    ],
    ids=["text", "dictionary", "binary", "struct"],
)
@pytest.mark.parametrize("name", ["json", "sidecar"])
def test_sidecars(tmp_path: Path, column: pa.Array, name: str) -> None:
    path = save(tmp_path / "x.parquet", {name: column, "image": pa.array([A, B])})
    first, second = read_all(path)
    assert isinstance(first, RawScreen)
    assert isinstance(second, RawScreen)
    assert first.sidecar is not None
    assert json.loads(first.sidecar) == {"locale": "es-AR"}
    assert second.sidecar is None


def test_a_null_image_costs_itself_alone(tmp_path: Path) -> None:
    good, null, last = read_all(save(tmp_path / "x.parquet", {"image": pa.array([A, None, C])}))
    assert isinstance(null, Reject)
    assert (null.member, null.reason) == ("row-00000001", RejectReason.MEMBER_UNREADABLE)
    assert isinstance(good, RawScreen)
    assert isinstance(last, RawScreen)


def test_paths_without_bytes_are_read_beside_the_shard_only(tmp_path: Path) -> None:
    write(tmp_path / "img" / "b.png", B)
    paths = ["img/b.png", "/tmp/b.png", "../b.png", "img/no.png"]
    column = pa.array([{"bytes": None, "path": path} for path in paths], STRUCT)
    first, *others = read_all(save(tmp_path / "x.parquet", {"image": column}))
    assert isinstance(first, RawScreen)
    assert first.data == B
    assert [(r.reason, path in r.detail) for r, path in zip(others, paths[1:], strict=True)] == [
        (RejectReason.MEMBER_UNREADABLE, True)
    ] * 3


@pytest.mark.parametrize("row", [0, 3, 6])
def test_pixels_of_one_row(tmp_path: Path, row: int) -> None:
    data = [png(16 + i, 12) for i in range(7)]
    shard = only_shard(save(tmp_path / "x.parquet", {"image": pa.array(data)}, rows_per_group=3))
    member = member_of_row(f"row-{row:08d}", None, len(data[row]), row)
    assert read_member(shard, member) == data[row]
    with pytest.raises(StorageError, match="row-00000099"):
        read_member(shard, member_of_row("row-00000099", None, 0, 99))


def test_units_read_their_own_rows_whatever_the_row_groups(tmp_path: Path) -> None:
    data = [png(16 + i, 12) for i in range(40)]
    path = save(tmp_path / "x.parquet", {"image": pa.array(data)}, rows_per_group=11)
    units = units_of(path, 7)
    assert [len(unit.members) for unit in units] == [7, 7, 7, 7, 7, 5]
    read = [item.data for unit in units for item in read_unit(unit) if isinstance(item, RawScreen)]
    assert read == data


@pytest.mark.parametrize("kind", ["half", "text", "no_images"])
def test_a_file_without_readable_images_is_one_problem(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "b.parquet"
    save(path, {"image": pa.array([A, B])})
    if kind == "half":
        write(path, path.read_bytes()[:200])
    elif kind == "text":
        write(path, b"<Error>NoSuchKey</Error>")
    else:
        save(path, {"texto": pa.array(["aGVsbG8=", "aGVsbG8="])})
    (unit,) = units_of(str(path))
    assert unit.members == ()
    assert [problem.reason for problem in unit.problems] == [RejectReason.SHARD_UNREADABLE]


def test_an_empty_table_and_an_empty_file_are_empty_shards(tmp_path: Path) -> None:
    for path in (
        save(tmp_path / "a.parquet", {"image": pa.array([], pa.binary())}),
        write(tmp_path / "b.parquet", b""),
    ):
        (unit,) = units_of(path)
        assert [problem.reason for problem in unit.problems] == [RejectReason.SHARD_EMPTY]


def test_a_damaged_row_group_leaves_its_neighbours(tmp_path: Path) -> None:
    path = Path(save(tmp_path / "x.parquet", {"image": pa.array([A, B, C])}, rows_per_group=1))
    group = pq.ParquetFile(path).metadata.row_group(1).column(0)
    whole = bytearray(path.read_bytes())
    start = group.dictionary_page_offset or group.data_page_offset
    whole[start : start + group.total_compressed_size] = bytes(group.total_compressed_size)
    path.write_bytes(bytes(whole))
    first, second, third = read_all(str(path))
    assert isinstance(first, RawScreen)
    assert isinstance(second, Reject)
    assert (second.member, second.reason) == ("row-00000001", RejectReason.MEMBER_UNREADABLE)
    assert isinstance(third, RawScreen)
    assert third.data == C


def test_a_store_that_fails_is_not_taken_for_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "x.parquet", {"image": pa.array([A, B])})
    (unit,) = units_of(path)
    shard = only_shard(path)

    class Broken:
        closed = False

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def read(self, *_: int) -> bytes:
            raise StorageError("s3://b/x: cannot read")

        def seek(self, *_: int) -> int:
            return 1000

        def tell(self) -> int:
            return 1000

        def close(self) -> None: ...

    monkeypatch.setattr(LocalStorage, "open", lambda *_: Broken())
    with pytest.raises(StorageError, match="cannot read"):
        index_shard(shard)
    with pytest.raises(StorageError, match="cannot read"):
        list(read_unit(unit))


def not_utf8(*texts: bytes) -> pa.Array:
    """A text column as a careless writer leaves it: Arrow does not look inside."""
    ends = itertools.accumulate(map(len, texts), initial=0)
    offsets = pa.array(list(ends), pa.int32()).buffers()[1]
    return pa.StringArray.from_buffers(len(texts), offsets, pa.py_buffer(b"".join(texts)))


def test_a_sidecar_column_that_is_not_utf8_is_passed_on_as_it_is(tmp_path: Path) -> None:
    latin = '{"queries": ["Contraseña"]}'.encode("latin-1")
    path = save(tmp_path / "x.parquet", {"image": pa.array([A, B]), "json": not_utf8(latin, b"{}")})
    assert [item.sidecar for item in read_all(path) if isinstance(item, RawScreen)] == [
        latin,
        b"{}",
    ]


def test_a_path_that_is_not_utf8_costs_itself_alone(tmp_path: Path) -> None:
    path_column = not_utf8(b"a\xf1o.png", b"b.png")
    column = pa.StructArray.from_arrays([pa.array([None, B]), path_column], names=["bytes", "path"])
    first, second = read_all(save(tmp_path / "x.parquet", {"image": column}))
    assert isinstance(first, Reject)
    assert first.reason is RejectReason.MEMBER_UNREADABLE
    assert isinstance(second, RawScreen)


@pytest.mark.parametrize(
    "odd",
    [
        pa.array([2**62], pa.timestamp("us")),
        pa.array([1], pa.timestamp("us", "Mars/Phobos")),
        pa.array([1], pa.timestamp("ns")),
        pa.array([b"\xff"]),
        pa.array([[("k", b"\xff")]], pa.map_(pa.string(), pa.binary())),
        not_utf8(b"\xff"),
        pa.array([1.5], pa.float16()),
    ],
    ids=["far", "nowhere", "nano", "binary", "map", "text", "half"],
)
def test_odd_fields_of_a_sidecar_struct_leave_the_others(tmp_path: Path, odd: pa.Array) -> None:
    queries = pa.array([["Abrí el menú"]])
    column = pa.StructArray.from_arrays([queries, odd], names=["queries", "odd"])
    path = save(tmp_path / "x.parquet", {"image": pa.array([A]), "sidecar": column})
    (item,) = read_all(path)
    assert isinstance(item, RawScreen)
    assert json.loads(item.sidecar or b"")["queries"] == ["Abrí el menú"]


def test_a_missing_target_in_a_struct_is_not_an_absent_one(tmp_path: Path) -> None:
    rows = [{"queries": [{"instruction": "a", "target": 3}, {"instruction": "b"}]}]
    path = save(tmp_path / "x.parquet", {"image": pa.array([A]), "sidecar": pa.array(rows)})
    (item,) = read_all(path)
    assert isinstance(item, RawScreen)
    assert json.loads(item.sidecar or b"") == rows[0]


@pytest.mark.parametrize("name", ["image", "json"])
def test_two_columns_of_one_name_are_a_problem_of_the_shard(tmp_path: Path, name: str) -> None:
    arrays = {"image": pa.array([A]), "json": pa.array(["{}"])}
    table = pa.table([*arrays.values(), arrays[name]], names=[*arrays, name])
    pq.write_table(table, tmp_path / "x.parquet")
    (problem,) = index_shard(only_shard(str(tmp_path / "x.parquet"))).problems
    assert problem.reason is RejectReason.SHARD_UNREADABLE
    assert f"`{name}`" in problem.detail


def test_a_struct_of_bytes_wins_over_unnamed_binary_columns(tmp_path: Path) -> None:
    captures = pa.array([{"bytes": A, "path": None}], STRUCT)
    path = save(tmp_path / "x.parquet", {"sha": pa.array([b"hash"]), "captura": captures})
    assert images(path) == [A]
