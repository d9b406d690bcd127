"""Zips: names in any encoding, entries of any making, and what cannot be read."""

import io
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_fixtures import (
    names,
    only_shard,
    png,
    problems,
    read_all,
    screens,
    sidecar,
    units_of,
    write,
    zip_bytes,
)

from schemas.codes import RejectReason
from schemas.records import Reject, ShardKind
from transforms.shards import RawScreen, index_shard, member_of_row, read_member, read_unit

A, B, C = png(16, 12), png(20, 12, (0, 99, 0)), png(24, 12, (0, 0, 99))
FILES = [
    ("a.png", A),
    ("a.json", sidecar("Guardar")),
    ("es/b.png", B),
    ("es/b.json", sidecar("Año nuevo")),
    ("c.JPG", C),
]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
@pytest.mark.parametrize("name", ["x.zip", "sin_sufijo"])
def test_members_and_sidecars_come_back_as_they_were(
    tmp_path: Path, method: int, name: str
) -> None:
    path = write(tmp_path / name, zip_bytes(FILES, method))
    assert only_shard(path).kind is ShardKind.ZIP
    found = [(s.member.name, s.data, s.sidecar) for s in screens(path)]
    assert found == [
        ("a.png", A, sidecar("Guardar")),
        ("es/b.png", B, sidecar("Año nuevo")),
        ("c.JPG", C, None),
    ]


class Unseekable(io.RawIOBase):
    """A pipe: `zipfile` must then write sizes behind the data."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def test_sizes_behind_the_data(tmp_path: Path) -> None:
    pipe = Unseekable()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in FILES:
            archive.writestr(name, data)
    path = write(tmp_path / "x.zip", bytes(pipe.data))
    assert [s.data for s in screens(path)] == [A, B, C]


def test_zip64(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in FILES:
            with archive.open(name, "w", force_zip64=True) as entry:
                entry.write(data)
    path = write(tmp_path / "x.zip", buffer.getvalue())
    assert [s.data for s in screens(path)] == [A, B, C]


def named(raw: bytes) -> bytes:
    """A zip whose one entry has these bytes as its name, without saying which encoding it is."""
    stand_in = "x" * len(raw)
    return zip_bytes([(stand_in, A)]).replace(stand_in.encode(), raw)


@pytest.mark.parametrize(
    ("data", "name", "flags"),
    [
        (zip_bytes([("año/botón.png", A)]), "año/botón.png", ()),
        (named("año/botón.png".encode()), "año/botón.png", ("name_utf8",)),
        (named("año/botón.png".encode("cp437")), "año/botón.png", ("name_cp437",)),
        (named("ÁRBOL.png".encode("cp850")), "ÁRBOL.png", ("name_cp850",)),
        (named(b"plano.png"), "plano.png", ()),
    ],
    ids=["said", "utf8", "cp437", "cp850", "ascii"],
)
def test_names_in_each_encoding_that_tools_write(
    tmp_path: Path, data: bytes, name: str, flags: tuple[str, ...]
) -> None:
    path = write(tmp_path / "x.zip", data)
    (screen,) = screens(path)
    assert (screen.member.name, screen.member.flags, screen.data) == (name, flags, A)
    row = member_of_row(name, screen.member.image.offset, len(A), None)
    assert read_member(only_shard(path), row) == A


def test_what_a_mac_adds_is_ignored(tmp_path: Path) -> None:
    files = [("a.png", A), ("__MACOSX/._a.png", b"\x00\x05\x16\x07"), ("._a.png", b"x")]
    path = write(tmp_path / "x.zip", zip_bytes([*files, (".DS_Store", b"x"), ("es/", b"")]))
    assert names(index_shard(only_shard(path)).members) == ["a.png"]
    assert problems(path) == []


def entry_bits(data: bytes, name: str, field: int, value: int) -> bytes:
    """Overwrite a 16-bit field of an entry, in its own header and in the directory."""
    whole = bytearray(data)
    for magic, name_at in ((b"PK\x03\x04", 30), (b"PK\x01\x02", 46)):
        start = whole.index(name.encode(), whole.index(magic) + name_at) - name_at
        while whole[start : start + 4] != magic:
            start = whole.index(name.encode(), start + name_at + 1) - name_at
        at = start + field + (2 if magic == b"PK\x01\x02" else 0)
        whole[at : at + 2] = struct.pack("<H", value)
    return bytes(whole)


@pytest.mark.parametrize(
    ("field", "value", "said"), [(6, 1, "encrypted"), (8, 93, "method 93"), (8, 9, "method 9")]
)
def test_an_entry_that_cannot_be_read_costs_itself_alone(
    tmp_path: Path, field: int, value: int, said: str
) -> None:
    data = zip_bytes([("a.png", A), ("b.png", B), ("c.png", C)])
    path = write(tmp_path / "x.zip", entry_bits(data, "b.png", field, value))
    (problem,) = index_shard(only_shard(path)).problems
    assert (problem.member, problem.reason) == ("b.png", RejectReason.MEMBER_UNSUPPORTED)
    assert said in problem.detail
    assert [s.data for s in screens(path)] == [A, C]


def test_a_damaged_entry_costs_itself_alone(tmp_path: Path) -> None:
    data = bytearray(zip_bytes([("a.png", A), ("b.png", B), ("c.png", C)], zipfile.ZIP_STORED))
    data[data.index(B) + 20] ^= 0xFF
    first, second, third = read_all(write(tmp_path / "x.zip", bytes(data)))
    assert isinstance(first, RawScreen)
    assert isinstance(second, Reject)
    assert (second.member, second.reason) == ("b.png", RejectReason.MEMBER_UNREADABLE)
    assert "CRC" in second.detail
    assert isinstance(third, RawScreen)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = zip_bytes([("a.png", A), ("bomba.png", bytes(80 * 2**20))])
    assert len(bomb) < 2**17
    path = write(tmp_path / "x.zip", bomb)
    (problem,) = index_shard(only_shard(path)).problems
    assert (problem.member, problem.reason) == ("bomba.png", RejectReason.IMAGE_TOO_LARGE)
    assert [s.data for s in screens(path)] == [A]


def test_an_entry_that_lies_about_its_size_gives_no_more_than_it_said(tmp_path: Path) -> None:
    data = bytearray(zip_bytes([("a.png", bytes(2**20))]))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 1000)
    (item,) = read_all(write(tmp_path / "x.zip", bytes(data)))
    assert isinstance(item, Reject)
    assert item.reason is RejectReason.MEMBER_UNREADABLE


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_zip_cut_at_any_byte_is_one_problem(data: st.DataObject) -> None:
    whole = zip_bytes(FILES)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "x.zip", whole[:cut])
        (unit,) = units_of(path)
        reason = RejectReason.SHARD_UNREADABLE if cut else RejectReason.SHARD_EMPTY
        assert [(p.member, p.reason) for p in unit.problems] == [(None, reason)]
        assert unit.members == ()


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_damaged_zip_never_ends_the_job(data: st.DataObject) -> None:
    whole = bytearray(zip_bytes(FILES))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        for unit in units_of(write(Path(folder) / "x.zip", bytes(whole))):
            assert len(list(read_unit(unit))) == len(unit.members)
