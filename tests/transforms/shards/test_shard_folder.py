"""Folders of images."""

import os
from pathlib import Path

import pytest
from shard_fixtures import names, only_shard, png, read_all, sidecar, units_of, write

from schemas.codes import RejectReason
from schemas.errors import StorageError
from schemas.records import Reject, ShardKind
from transforms.shards import RawScreen, index_shard, member_of_row, read_member, read_unit

A, B = png(16, 12), png(20, 12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in {
        "b.png": B,
        "es/año #1/a.webp": A,
        "es/año #1/a.json": sidecar("Abrir"),
        "[x] 1.jpg": A,
        ".DS_Store": b"x",
        "_SUCCESS": b"",
        "leeme.txt": b"x",
    }.items():
        write(tmp_path / "capturas" / name, data)
    return tmp_path / "capturas"


def test_images_at_any_depth_are_one_shard(folder: Path) -> None:
    shard = only_shard(str(folder))
    index = index_shard(shard)
    assert (shard.uri, shard.kind) == (f"{folder}/", ShardKind.FOLDER)
    assert names(index.members) == ["[x] 1.jpg", "b.png", "es/año #1/a.webp"]
    assert [(p.member, p.reason) for p in index.problems] == [
        ("leeme.txt", RejectReason.MEMBER_UNSUPPORTED)
    ]
    found = [(s.data, s.sidecar) for s in read_all(str(folder)) if isinstance(s, RawScreen)]
    assert found == [(A, None), (B, None), (A, sidecar("Abrir"))]


def test_pixels_are_found_again_from_a_row(folder: Path) -> None:
    member = member_of_row("es/año #1/a.webp", None, len(A), None)
    assert read_member(only_shard(str(folder)), member) == A
    gone = member_of_row("no.png", None, 10, None)
    with pytest.raises(StorageError, match=r"no\.png"):
        read_member(only_shard(str(folder)), gone)


def test_a_file_that_changed_costs_itself_alone(folder: Path) -> None:
    (unit,) = units_of(str(folder))
    (folder / "[x] 1.jpg").write_bytes(A + b"mas")
    (folder / "es/año #1/a.json").unlink()
    changed, good, lost = read_unit(unit)
    assert isinstance(good, RawScreen)
    for item, name in ((changed, "[x] 1.jpg"), (lost, "es/año #1/a.webp")):
        assert isinstance(item, Reject)
        assert (item.member, item.reason) == (name, RejectReason.SHARD_CHANGED)


def test_an_empty_folder_is_an_empty_shard(tmp_path: Path) -> None:
    (tmp_path / "vacia").mkdir()
    (unit,) = units_of(f"{tmp_path}/vacia/")
    assert [problem.reason for problem in unit.problems] == [RejectReason.SHARD_EMPTY]


def test_a_name_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "f" / "a.png", A)
    Path(os.fsdecode(os.fsencode(tmp_path / "f") + b"/a\xf1o.png")).write_bytes(A)
    index = index_shard(only_shard(f"{tmp_path}/f"))
    assert names(index.members) == ["a.png"]
    assert [(p.member, p.reason) for p in index.problems] == [
        ("año.png", RejectReason.MEMBER_UNREADABLE)
    ]
