"""The hard shards that people have met elsewhere, one test for each, under its number.

What a later stage does with them (duplicates across shards, exit codes) is tested with that stage.
"""

import base64
import bz2
import gzip
import io
import json
import lzma
import tarfile
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shard_fixtures import (
    names,
    only_shard,
    parquet_bytes,
    png,
    problems,
    read_all,
    screens,
    sidecar,
    tar_bytes,
    units_of,
    write,
    zstd,
)

from schemas.codes import RejectReason
from schemas.ids import sha256_hex
from schemas.records import Reject
from transforms.shards import RawScreen, index_shard, list_shards, read_unit, split_units

A, B, C, D = (png(16 + i, 12, (i, 0, 0)) for i in range(4))
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def cells(*images: bytes | None) -> list[dict[str, object]]:
    return [{"bytes": data, "path": None} for data in images]


def test_b054_a_name_in_latin1_is_read_and_its_encoding_told(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as t:
        info = tarfile.TarInfo("año/botón.png")
        info.size = len(A)
        t.addfile(info, io.BytesIO(A))
    (screen,) = screens(write(tmp_path / "x.tar", buffer.getvalue()))
    assert screen.member.name == "año/botón.png"
    assert screen.member.flags == ("name_cp1252",)


def test_b056_a_repeated_member_is_told_by_name_and_the_first_used(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", tar_bytes([("a.png", A), ("a.json", b"{}"), ("a.png", B)]))
    (unit,) = units_of(path)
    (problem,) = unit.problems
    assert (problem.member, problem.reason) == ("a.png", RejectReason.MEMBER_DUPLICATE)
    assert unit.shard.uri == path
    assert [s.data for s in screens(path)] == [A]


def test_b057_one_key_in_several_shards_stays_several_screens(tmp_path: Path) -> None:
    for name, data in (("1.tar", A), ("2.tar", B), ("3.tar", A)):
        write(tmp_path / name, tar_bytes([("0001.png", data)]))
    found = []
    for shard in list_shards([str(tmp_path)]):
        (unit,) = split_units(shard, index_shard(shard), 64)
        (screen,) = read_unit(unit)
        assert isinstance(screen, RawScreen)
        found.append((unit.unit_id, shard.uri, screen.member.name, sha256_hex(screen.data)))
    assert len({(unit, shard, member) for unit, shard, member, _ in found}) == 3
    assert [image == found[0][3] for *_, image in found] == [True, False, True]


def test_b059_a_missing_sidecar_is_none_and_one_without_picture_counted(tmp_path: Path) -> None:
    files = [(f"{i}.png", png(16 + i, 12)) for i in range(5)]
    files += [(f"{i}.json", sidecar(f"Botón {i}")) for i in (0, 2, 4, 9)]
    path = write(tmp_path / "x.tar", tar_bytes(files))
    assert [s.sidecar is None for s in screens(path)] == [False, True, False, True, False]
    assert problems(path) == [("9.json", RejectReason.SIDECAR_ORPHAN)]


def test_b060_upper_case_suffixes_are_read(tmp_path: Path) -> None:
    files = [("A.PNG", A), ("B.JPG", B), ("c.Png", C), ("c.Json", b"{}"), ("A.JSON", b"{}")]
    found = screens(write(tmp_path / "x.tar", tar_bytes(files)))
    assert [(s.member.name, s.sidecar) for s in found] == [
        ("A.PNG", b"{}"),
        ("B.JPG", None),
        ("c.Png", b"{}"),
    ]


@pytest.mark.parametrize("where", ["data", "header", "end"])
def test_b061_a_cut_tar_keeps_what_came_before(tmp_path: Path, where: str) -> None:
    whole = tar_bytes([(f"{i}.png", data) for i, data in enumerate((A, B, C, D))])
    third = whole.index(b"2.png")
    ends = len(whole.rstrip(b"\0"))
    cut = {"data": whole.index(C) + 9, "header": third + 200, "end": -(-ends // 512) * 512}[where]
    path = write(tmp_path / "x.tar", whole[:cut])
    kept = [A, B, C, D] if where == "end" else [A, B]
    assert [s.data for s in screens(path)] == kept
    assert {reason for _, reason in problems(path)} == {RejectReason.SHARD_TRUNCATED}


def test_b062_what_a_mac_adds_is_no_picture(tmp_path: Path) -> None:
    apple = b"\x00\x05\x16\x07\x00\x02\x00\x00"
    files = [("._a.png", apple), ("a.png", A), ("__MACOSX/._a.png", apple), ("Thumbs.db", b"x")]
    for name, data in [*files, (".DS_Store", b"x")]:
        write(tmp_path / "f" / name, data)
    for path in (write(tmp_path / "x.tar", tar_bytes(files)), f"{tmp_path}/f"):
        assert names(index_shard(only_shard(path)).members) == ["a.png"]
        assert problems(path) == []


@pytest.mark.parametrize("flavour", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_b063_long_names_are_whole(tmp_path: Path, flavour: int) -> None:
    long = ["ñ/" + "x" * size + end for size in (180, 300) for end in ("1.png", "2.png")]
    path = write(tmp_path / "x.tar", tar_bytes([(name, A) for name in long], flavour))
    assert names(index_shard(only_shard(path)).members) == long


def test_b064_compression_is_told_by_the_first_bytes(tmp_path: Path) -> None:
    plain = tar_bytes([("a.png", A), ("b.png", B)])
    lies = {"gzip.tar": gzip.compress(plain), "plano.tar.gz": plain, "zst.tgz": zstd(plain)}
    for name, data in lies.items():
        assert [s.data for s in screens(write(tmp_path / name, data))] == [A, B]
    path = write(tmp_path / "otro.tar", b"BZh91AY" + bytes(600))
    (problem,) = index_shard(only_shard(path)).problems
    assert problem.reason is RejectReason.SHARD_UNREADABLE
    assert "bzip2" in problem.detail


def test_tars_packed_otherwise_are_refused_by_name_and_never_passed_over(tmp_path: Path) -> None:
    plain = tar_bytes([("a.png", A)])
    packed = {"a.tar.bz2": bz2.compress(plain), "b.TXZ": lzma.compress(plain)}
    for name, data in packed.items():
        write(tmp_path / name, data)
    write(tmp_path / "c.tar", plain)
    for pattern in (str(tmp_path), f"{tmp_path}/*"):
        shards = [shard.uri for shard in list_shards([pattern])]
        assert [uri.rpartition("/")[2] for uri in shards] == [*packed, "c.tar"]
        assert [problems(uri) for uri in shards[:2]] == [
            [(None, RejectReason.SHARD_UNREADABLE)]
        ] * 2


def test_b066_an_empty_shard_says_so(tmp_path: Path) -> None:
    folders = io.BytesIO()
    with tarfile.open(fileobj=folders, mode="w") as tar:
        only_folder = tarfile.TarInfo("es")
        only_folder.type = tarfile.DIRTYPE
        tar.addfile(only_folder)
    for name, data in (("0", b""), ("ceros", bytes(10240)), ("carpetas", folders.getvalue())):
        path = write(tmp_path / f"{name}.tar", data)
        assert problems(path) == [(None, RejectReason.SHARD_EMPTY)]
        assert len(units_of(path)) == 1


def test_b067_one_base_name_in_folders_and_with_suffixes_is_three_screens(tmp_path: Path) -> None:
    files = [("es/login.png", A), ("mx/login.png", B), ("es/login.jpg", C)]
    for name, data in files:
        write(tmp_path / "f" / name, data)
    for path in (write(tmp_path / "x.tar", tar_bytes(files)), f"{tmp_path}/f"):
        assert {s.member.name: s.data for s in screens(path)} == dict(files)


def test_b068_a_table_elsewhere_is_found_and_both_kinds_of_orphans_counted(tmp_path: Path) -> None:
    for name, data in (("a.png", A), ("b.png", B), ("c.png", C), ("d.png", D)):
        write(tmp_path / "datos/train" / name, data)
    rows = [{"file_name": f"train/{name}.png", "app": "x"} for name in ("a", "b", "y", "z")]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    write(tmp_path / "datos/metadata1000.jsonl", text.encode())
    for folder in ("datos", "datos/train"):
        path = f"{tmp_path}/{folder}"
        assert [reason for _, reason in problems(path)] == [RejectReason.SIDECAR_ORPHAN] * 2
        assert [s.sidecar is not None for s in screens(path)] == [True, True, False, False]
    flags = [s.member.flags for s in screens(f"{tmp_path}/datos")]
    assert flags == [(), (), ("metadata_row_missing",), ("metadata_row_missing",)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([cells(A), cells(B, C), [], None, cells(D, None)], pa.list_(STRUCT)),
        pa.array([[A], [B, C], [], None, [D, None]], pa.list_(pa.binary())),
        pa.array([[A], [B, C], [], None, [D, None]], pa.large_list(pa.large_binary())),
    ],
    ids=["struct", "binary", "large"],
)
def test_b069_each_picture_of_a_list_is_a_screen(tmp_path: Path, column: pa.Array) -> None:
    words = pa.array([json.dumps({"app": str(i)}) for i in range(5)])
    path = write(tmp_path / "x.parquet", parquet_bytes({"images": column, "json": words}))
    found = [(s.member.name, s.data, json.loads(s.sidecar or b"")["app"]) for s in screens(path)]
    assert found == [
        ("row-00000000-0", A, "0"),
        ("row-00000001-0", B, "1"),
        ("row-00000001-1", C, "1"),
        ("row-00000004-0", D, "4"),
    ]
    assert problems(path) == [
        ("row-00000002", RejectReason.MEMBER_UNREADABLE),
        ("row-00000003", RejectReason.MEMBER_UNREADABLE),
    ]
    (null,) = [item for item in read_all(path) if isinstance(item, Reject)]
    assert (null.member, null.reason) == ("row-00000004-1", RejectReason.MEMBER_UNREADABLE)


def test_b070_a_path_alone_is_read_beside_the_file_or_refused(tmp_path: Path) -> None:
    write(tmp_path / "img/a.png", A)
    paths = ["img/a.png", "/home/otra/maquina/a.png"]
    column = pa.array([{"bytes": None, "path": path} for path in paths], STRUCT)
    path = write(tmp_path / "x.parquet", parquet_bytes({"image": column}))
    good, bad = read_all(path)
    assert isinstance(good, RawScreen)
    assert good.data == A
    assert isinstance(bad, Reject)
    assert bad.reason is RejectReason.MEMBER_UNREADABLE
    assert "/home/otra/maquina/a.png" in bad.detail


def test_b071_each_type_of_bytes_is_read_and_what_is_none_said(tmp_path: Path) -> None:
    readable = [
        pa.array([A, B], pa.binary()),
        pa.array([A, B], pa.large_binary()),
        pa.array([A, B], pa.binary_view()),
        pa.array([A, B], pa.binary()).dictionary_encode(),
    ]
    for i, column in enumerate(readable):
        path = write(tmp_path / f"{i}.parquet", parquet_bytes({"image": column}))
        assert [s.data for s in screens(path)] == [A, B]
    spark = pa.array([{"origin": "a.png", "height": 1, "width": 1, "mode": 16, "data": b"x"}])
    path = write(tmp_path / "spark.parquet", parquet_bytes({"image": spark}))
    (problem,) = index_shard(only_shard(path)).problems
    assert problem.reason is RejectReason.SHARD_UNREADABLE
    assert "image: " in problem.detail


def test_b071_base64_text_is_read_and_other_text_costs_its_row_alone(tmp_path: Path) -> None:
    plain = base64.b64encode(A).decode()
    lines = base64.encodebytes(B).decode()
    column = pa.array([plain, "capturas/año.png", lines, None, "data:image/png;base64," + plain])
    for kind in (pa.string(), pa.large_string()):
        shard = {"image": column.cast(kind), "alt": pa.array(["x"] * 5)}
        path = write(tmp_path / f"{kind}.parquet", parquet_bytes(shard))
        items = read_all(path)
        assert [item.data for item in items if isinstance(item, RawScreen)] == [A, B, A]
        refused = [item for item in items if isinstance(item, Reject)]
        assert [one.reason for one in refused] == [RejectReason.MEMBER_UNREADABLE] * 2
        assert "no base64" in refused[0].detail


def test_b072_a_large_row_group_is_read_a_few_rows_at_a_time(tmp_path: Path) -> None:
    """`python -m tests.benchmark.big_shard --kind parquet` does the same with more than 2 GiB.

    A page is the least that can be unpacked; writers that count bytes make one for each image.
    """
    picture = A + bytes(5_000_000)
    schema = pa.schema([("image", pa.binary())])
    path = str(tmp_path / "x.parquet")
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, write_batch_size=1
    ) as writer:
        writer.write_table(pa.table({"image": pa.array([picture] * 48, pa.binary())}))
    assert pq.ParquetFile(path).num_row_groups == 1
    before = pa.total_allocated_bytes()
    peak = 0
    for unit in units_of(path, 16):
        for item in read_unit(unit):
            assert isinstance(item, RawScreen)
            assert item.data == picture
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < 100_000_000


def test_b073_a_half_file_is_told_by_name_and_markers_are_passed_over(tmp_path: Path) -> None:
    good = parquet_bytes({"image": pa.array([A, B])})
    for name, data in (("a.parquet", good), ("b.parquet", good[: len(good) // 2])):
        write(tmp_path / name, data)
    write(tmp_path / "_SUCCESS", b"")
    write(tmp_path / ".c.parquet.crc", b"crc")
    shards = list_shards([str(tmp_path)])
    assert [shard.uri.rpartition("/")[2] for shard in shards] == ["a.parquet", "b.parquet"]
    assert [s.data for s in screens(shards[0].uri)] == [A, B]
    assert problems(shards[1].uri) == [(None, RejectReason.SHARD_UNREADABLE)]


def test_b134_a_name_and_its_row_match_in_both_normal_forms(tmp_path: Path) -> None:
    raw = unicodedata.normalize("NFD", "botón.png")
    write(tmp_path / "f" / raw, A)
    row = {"file_name": "botón.png", "app": "x"}
    write(tmp_path / "f/metadata.jsonl", json.dumps(row, ensure_ascii=False).encode())
    (screen,) = screens(f"{tmp_path}/f")
    assert screen.member.name == raw
    assert screen.sidecar is not None
    assert problems(f"{tmp_path}/f") == []


def test_b136_letters_are_never_folded(tmp_path: Path) -> None:
    pairs = [("año", A), ("ano", B), ("peña", C), ("pena", D)]
    files = [(f"{name}.png", data) for name, data in pairs]
    files += [(f"{name}.json", sidecar(name)) for name, _ in pairs]
    for name, data in files:
        write(tmp_path / "f" / name, data)
    for path in (write(tmp_path / "x.tar", tar_bytes(files)), f"{tmp_path}/f"):
        found = {s.member.name: (s.data, s.sidecar) for s in screens(path)}
        assert found == {f"{name}.png": (data, sidecar(name)) for name, data in pairs}
