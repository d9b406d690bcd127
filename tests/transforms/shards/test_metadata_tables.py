"""Metadata tables of image folders, as Hugging Face's `imagefolder` has them."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shard_fixtures import only_shard, png, problems, screens, units_of, write

from schemas.codes import RejectReason
from schemas.records import Reject, ShardKind
from transforms.shards import index_shard, read_sidecar, read_unit

A, B, C = png(16, 12), png(20, 12), png(24, 12)
ROWS = [
    {"file_name": "a.png", "app": "Tienda", "instruction": "Abrí «Año nuevo»,\nya"},
    {"file_name": "es/b.png", "app": "Ñandú", "queries": ["Buscar"]},
    {"file_name": "./es/c.png", "app": "Otra", "device_pixel_ratio": 2},
]


def jsonl(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def csv_table(rows: list[dict], encoding: str = "utf-8") -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names)]
    for row in rows:
        cells = [row.get(name, "") for name in names]
        texts = [c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in cells]
        lines.append(",".join('"' + text.replace('"', '""') + '"' for text in texts))
    return ("\r\n".join(lines) + "\r\n").encode(encoding)


def parquet_table(rows: list[dict]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=2)
    return sink.getvalue().to_pybytes()


KINDS: dict[str, Callable[[list[dict]], bytes]] = {
    "metadata.jsonl": jsonl,
    "metadata.csv": csv_table,
    "metadata.parquet": parquet_table,
}


def folder(root: Path) -> Path:
    for name, data in {"a.png": A, "es/b.png": B, "es/c.png": C}.items():
        write(root / name, data)
    return root


def sidecars(path: Path) -> list[dict]:
    return [json.loads(s.sidecar) if s.sidecar else {} for s in screens(str(path))]


@pytest.mark.parametrize("name", KINDS)
def test_each_image_has_its_row(tmp_path: Path, name: str) -> None:
    root = folder(tmp_path / "f")
    rows = [ROWS[0], ROWS[1], ROWS[2]] if name != "metadata.parquet" else _same_keys()
    write(root / name, KINDS[name](rows))
    assert only_shard(str(root)).kind is ShardKind.FOLDER
    assert problems(str(root)) == []
    first, second, third = sidecars(root)
    assert [first["app"], second["app"], third["app"]] == ["Tienda", "Ñandú", "Otra"]
    assert first["queries"][0]["instruction"] == ROWS[0]["instruction"]
    assert second["queries"] == ["Buscar"]
    assert third["device_pixel_ratio"] == 2


def _same_keys() -> list[dict]:
    """In an Arrow table every row has every column."""
    keys = ("file_name", "app", "instruction", "queries", "device_pixel_ratio")
    return [{key: row.get(key) for key in keys} for row in ROWS]


@pytest.mark.parametrize("name", KINDS)
def test_the_nearest_table_wins_and_a_json_file_wins_over_both(tmp_path: Path, name: str) -> None:
    root = folder(tmp_path / "f")
    outer = [{"file_name": n, "app": "fuera"} for n in ("a.png", "es/b.png", "es/c.png")]
    write(root / "metadata.jsonl", jsonl(outer))
    inner = [{"file_name": n, "app": "dentro"} for n in ("b.png", "c.png")]
    write(root / "es" / name, KINDS[name](inner))
    write(root / "es/c.json", b'{"app": "propia"}')
    assert [s["app"] for s in sidecars(root)] == ["fuera", "dentro", "propia"]
    assert problems(str(root)) == []


def test_unknown_rows_and_images_without_a_row_are_told(tmp_path: Path) -> None:
    root = folder(tmp_path / "f")
    rows = [{"file_name": "a.png"}, {"file_name": "no.png"}, {"file_name": "a.png"}, {"x": 1}]
    write(root / "metadata.jsonl", jsonl(rows) + b"{no\n")
    index = index_shard(only_shard(str(root)))
    assert [(p.reason, p.detail.partition(":")[0].partition(" is")[0]) for p in index.problems] == [
        (RejectReason.SIDECAR_ORPHAN, "row 2"),
        (RejectReason.SIDECAR_INVALID, "row 3"),
        (RejectReason.SIDECAR_INVALID, "row 4"),
        (RejectReason.SIDECAR_INVALID, "row 5"),
    ]
    lost = ("metadata_row_missing",)
    assert [m.flags for m in index.members] == [(), lost, lost]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("metadata.csv", b"archivo,app\na.png,x\n"),
        ("metadata.parquet", parquet_table([{"archivo": "a.png"}])),
        ("metadata.parquet", b"PAR1 no PAR1"),
        ("metadata.csv", b""),
    ],
)
def test_a_table_that_names_no_image_costs_only_itself(
    tmp_path: Path, name: str, data: bytes
) -> None:
    root = folder(tmp_path / "f")
    write(root / name, data)
    assert problems(str(root)) == [(name, RejectReason.SIDECAR_INVALID)]
    assert [s.data for s in screens(str(root))] == [A, B, C]


def test_a_row_with_a_comma_too_many_is_refused_rather_than_cut(tmp_path: Path) -> None:
    root = folder(tmp_path / "f")
    lines = ["file_name,instruction", "a.png,Guardar, por favor", "es/b.png,Abrir,", "es/c.png"]
    write(root / "metadata.csv", "\n".join(lines).encode())
    (problem,) = index_shard(only_shard(str(root))).problems
    assert problem.reason is RejectReason.SIDECAR_INVALID
    assert problem.detail.startswith("row 1: 3 cells under 2 names")
    first, second, third = screens(str(root))
    assert first.sidecar is None
    assert [json.loads(s.sidecar or b"").get("instruction") for s in (second, third)] == [
        "Abrir",
        None,
    ]


def test_a_table_in_another_encoding_is_read_and_said(tmp_path: Path) -> None:
    root = folder(tmp_path / "f")
    rows = [{"file_name": "a.png", "app": "Peña"}, {"file_name": "es/b.png", "app": "Sol"}]
    write(root / "metadata.csv", csv_table(rows, "latin-1"))
    first, second, _ = screens(str(root))
    assert json.loads(first.sidecar or b"")["app"] == "Peña"
    assert (first.member.flags, second.member.flags) == (("encoding_cp1252",), ())


def test_names_match_across_normal_forms(tmp_path: Path) -> None:
    for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
        root = tmp_path / form
        name = unicodedata.normalize(form, "botón.png")
        write(root / name, A)
        row = {"file_name": unicodedata.normalize(other, "botón.png"), "app": "x"}
        write(root / "metadata.jsonl", jsonl([row]))
        (screen,) = screens(str(root))
        assert (screen.member.name, problems(str(root))) == (name, [])
        assert screen.sidecar is not None


def test_label_folders_without_a_table_do_no_harm(tmp_path: Path) -> None:
    for label in ("gato", "perro"):
        write(tmp_path / "f/train" / label / "0001.png", A)
    assert [s.member.name for s in screens(f"{tmp_path}/f")] == [
        "train/gato/0001.png",
        "train/perro/0001.png",
    ]
    assert problems(f"{tmp_path}/f") == []


@pytest.mark.parametrize("inside", ["", "train/"])
def test_a_table_one_level_up_is_found_if_it_speaks_of_this_folder(
    tmp_path: Path, inside: str
) -> None:
    folder(tmp_path / "datos/train")
    rows = [{"file_name": f"{inside}a.png", "app": "x"}, {"file_name": f"{inside}no.png"}]
    rows.append({"file_name": "test/z.png"})
    write(tmp_path / "datos/metadata1000.jsonl", jsonl(rows))
    path = f"{tmp_path}/datos/train"
    assert [s.get("app") for s in sidecars(Path(path))] == ["x", None, None]
    assert problems(path) == [("../metadata1000.jsonl", RejectReason.SIDECAR_ORPHAN)]
    write(tmp_path / "datos/metadata1000.jsonl", jsonl([{"file_name": "test/z.png"}]))
    assert problems(path) == []


def test_a_folder_of_tables_alone_is_one_of_shards(tmp_path: Path) -> None:
    write(tmp_path / "f/metadata.parquet", parquet_table([{"image": A}]))
    assert only_shard(f"{tmp_path}/f").kind is ShardKind.PARQUET


def test_a_table_that_changed_since_the_plan_costs_its_images(tmp_path: Path) -> None:
    root = folder(tmp_path / "f")
    write(root / "metadata.jsonl", jsonl(ROWS))
    (unit,) = units_of(str(root))
    write(root / "metadata.jsonl", jsonl(ROWS[:1]))
    items = list(read_unit(unit))
    assert [item.reason for item in items if isinstance(item, Reject)] == [
        RejectReason.SHARD_CHANGED
    ] * len([i for i in items if isinstance(i, Reject)])
    assert any(isinstance(item, Reject) for item in items)


@pytest.mark.parametrize("name", KINDS)
def test_a_sidecar_is_read_without_its_image(tmp_path: Path, name: str) -> None:
    root = folder(tmp_path / "f")
    write(root / name, KINDS[name]([{"file_name": "es/b.png", "app": "sola"}]))
    shard = only_shard(str(root))
    members = index_shard(shard).members
    found = [read_sidecar(shard, member) for member in members]
    assert [json.loads(data)["app"] if data else None for data in found] == [None, "sola", None]


def test_a_unit_with_far_rows_reads_each_of_them(tmp_path: Path) -> None:
    root = folder(tmp_path / "f")
    filler = [{"file_name": f"no{i}.png", "text": "x" * 2**16} for i in range(80)]
    write(root / "metadata.jsonl", jsonl([ROWS[0], *filler, ROWS[1]]))
    assert [s.get("app") for s in sidecars(root)] == ["Tienda", "Ñandú", None]
