"""Tars: what is found, what is read, and what a cut costs."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shard_fixtures import names, only_shard, png, read_all, sidecar, tar_bytes, units_of, write

from schemas.codes import RejectReason
from schemas.errors import StorageError
from schemas.records import Problem, Reject
from transforms.shards import RawScreen, index_shard, member_of_row, read_member, read_unit

A, B, C = png(16, 12), png(20, 12, (0, 99, 0)), png(24, 12, (0, 0, 99))
FILES = [
    ("a.png", A),
    ("a.json", sidecar("Guardar")),
    ("es/b.png", B),
    ("es/b.json", sidecar("Año nuevo")),
    ("c.JPG", C),
]
SMALL = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def problems(path: str) -> list[tuple[str | None, RejectReason]]:
    return [(p.member, p.reason) for p in index_shard(only_shard(path)).problems]


@pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("name", ["x.tar", "x.tar.gz", "x.tgz", "mal nombrado.tar"])
def test_members_and_sidecars_come_back_as_they_were(
    tmp_path: Path, tar_format: int, name: str
) -> None:
    data = tar_bytes(FILES, tar_format)
    if name != "x.tar":  # the last name lies about its compression
        data = gzip.compress(data)
    screens = read_all(write(tmp_path / name, data))
    found = [(s.member.name, s.data, s.sidecar) for s in screens if isinstance(s, RawScreen)]
    assert found == [
        ("a.png", A, sidecar("Guardar")),
        ("es/b.png", B, sidecar("Año nuevo")),
        ("c.JPG", C, None),
    ]


def test_any_member_order_gives_the_same_screens(tmp_path: Path) -> None:
    for name, compress in (("r.tar", bytes), ("r.tgz", gzip.compress)):
        screens = read_all(write(tmp_path / name, compress(tar_bytes(FILES[::-1]))))
        found = {s.member.name: (s.data, s.sidecar) for s in screens if isinstance(s, RawScreen)}
        assert found["a.png"] == (A, sidecar("Guardar"))
        assert found["es/b.png"] == (B, sidecar("Año nuevo"))


def test_image_bytes_are_found_by_offset_alone(tmp_path: Path) -> None:
    for name, compress in (("o.tar", bytes), ("o.tgz", gzip.compress)):
        shard = only_shard(write(tmp_path / name, compress(tar_bytes(FILES))))
        member = index_shard(shard).members[1]
        row = member_of_row("es/b.png", member.image.offset, len(B), None)
        assert read_member(shard, row) == B


@pytest.mark.parametrize(
    ("image", "json_name"),
    [
        ("captura.v1.2.png", "captura.v1.2.json"),
        ("000.img.png", "000.json"),
        ("x.png", "x.png.json"),
        ("bot\u00f3n.png", "boto\u0301n.json"),
        ("X.PNG", "X.Json"),
    ],
)
def test_sidecars_are_found_under_each_common_name(
    tmp_path: Path, image: str, json_name: str
) -> None:
    (screen,) = read_all(write(tmp_path / "s.tar", tar_bytes([(image, A), (json_name, b"{}")])))
    assert isinstance(screen, RawScreen)
    assert (screen.member.name, screen.sidecar) == (image, b"{}")


def test_versions_in_names_stay_apart(tmp_path: Path) -> None:
    files = [("c.1.png", A), ("c.1.json", b"1"), ("c.2.png", B), ("c.2.json", b"2")]
    screens = read_all(write(tmp_path / "v.tar", tar_bytes(files)))
    assert [s.sidecar for s in screens if isinstance(s, RawScreen)] == [b"1", b"2"]


def test_same_base_names_in_folders_and_with_other_suffixes_are_all_kept(tmp_path: Path) -> None:
    files = [
        ("es/login.png", A),
        ("mx/login.png", B),
        ("es/login.jpg", C),
        ("es/login.json", b"{}"),
    ]
    screens = read_all(write(tmp_path / "n.tar", tar_bytes(files)))
    assert [(s.data, s.sidecar) for s in screens if isinstance(s, RawScreen)] == [
        (A, b"{}"),
        (B, None),
        (C, b"{}"),
    ]


def test_the_first_of_two_equal_names_wins_and_the_other_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "d.tar", tar_bytes([("a.png", A), ("a.json", b"{}"), ("a.png", B)]))
    assert problems(path) == [("a.png", RejectReason.MEMBER_DUPLICATE)]
    (screen,) = read_all(path)
    assert isinstance(screen, RawScreen)
    assert screen.data == A


def test_litter_is_ignored_and_foreign_files_are_reported(tmp_path: Path) -> None:
    files = [
        ("._a.png", b"\x00\x05\x16\x07"),
        ("__MACOSX/._a.png", b"x"),
        (".DS_Store", b"x"),
        ("capturas/Thumbs.db", b"x"),
        ("a.png", A),
        ("notas.txt", b"hola"),
        ("huerfano.json", b"{}"),
    ]
    path = write(tmp_path / "l.tar", tar_bytes(files))
    assert names(index_shard(only_shard(path)).members) == ["a.png"]
    assert problems(path) == [
        ("notas.txt", RejectReason.MEMBER_UNSUPPORTED),
        ("huerfano.json", RejectReason.SIDECAR_ORPHAN),
    ]


def test_links_are_reported(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        link = tarfile.TarInfo("enlace.png")
        link.type, link.linkname = tarfile.SYMTYPE, "a.png"
        tar.addfile(link)
    path = write(tmp_path / "k.tar", buffer.getvalue())
    assert problems(path) == [("enlace.png", RejectReason.MEMBER_UNSUPPORTED)]


@pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_that_differ_at_the_end_stay_apart(tmp_path: Path, tar_format: int) -> None:
    long = ["año/" + "x" * size + end for size in (180, 300) for end in ("1.png", "2.png")]
    path = write(tmp_path / "p.tar", tar_bytes([(name, A) for name in long], tar_format))
    assert names(index_shard(only_shard(path)).members) == long


def test_latin1_names_become_unicode(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1"
    ) as tar:
        info = tarfile.TarInfo("año/botón.png")
        info.size = len(A)
        tar.addfile(info, io.BytesIO(A))
    (screen,) = read_all(write(tmp_path / "l1.tar", buffer.getvalue()))
    assert isinstance(screen, RawScreen)
    assert (screen.member.name, screen.data) == ("año/botón.png", A)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", RejectReason.SHARD_EMPTY),
        (bytes(10240), RejectReason.SHARD_EMPTY),
        (b"<html>403 Forbidden</html>" * 60, RejectReason.SHARD_UNREADABLE),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 600, RejectReason.SHARD_UNREADABLE),
    ],
)
def test_a_shard_without_members_is_one_unit_with_one_problem(
    tmp_path: Path, data: bytes, reason: RejectReason
) -> None:
    (unit,) = units_of(write(tmp_path / "e.tar", data))
    assert unit.members == ()
    assert [problem.reason for problem in unit.problems] == [reason]
    assert list(read_unit(unit)) == []


@SMALL
@given(st.data())
@pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_cut_tar_keeps_what_came_before_and_says_so(
    tmp_path: Path, tar_format: int, data: st.DataObject
) -> None:
    files = [("a.png", A), ("ñ" * 150 + ".png", B), ("c.png", C)]
    whole = tar_bytes(files, tar_format)
    end_marks = len(whole.rstrip(b"\0"))
    cut = data.draw(st.integers(1, end_marks))
    path = write(tmp_path / "cut.tar", whole[:cut])
    screens = [s for s in read_all(path) if isinstance(s, RawScreen)]
    full = dict(files)
    assert all(full[s.member.name] == s.data for s in screens)
    ends = [whole.index(d) + len(d) for _, d in files]
    assert len(screens) == sum(end <= cut for end in ends)
    reasons = {reason for _, reason in problems(path)}
    no_header = cut < 512
    assert reasons == {RejectReason.SHARD_UNREADABLE if no_header else RejectReason.SHARD_TRUNCATED}


@SMALL
@given(st.data())
def test_a_cut_gzip_tar_keeps_what_came_before_and_says_so(
    tmp_path: Path, data: st.DataObject
) -> None:
    whole = gzip.compress(tar_bytes([("a.png", A), ("b.png", B), ("c.png", C)]))
    cut = data.draw(st.integers(10, len(whole) - 9))
    path = write(tmp_path / "cut.tgz", whole[:cut])
    screens = read_all(path)
    pairs = [(s.member.name, s.data) for s in screens if isinstance(s, RawScreen)]
    assert pairs == [("a.png", A), ("b.png", B), ("c.png", C)][: len(pairs)]
    assert len(pairs) == len(screens)
    assert {reason for _, reason in problems(path)} <= {RejectReason.SHARD_TRUNCATED}
    assert problems(path) or len(pairs) == 3


@SMALL
@given(st.data())
def test_a_damaged_tar_never_ends_the_job(tmp_path: Path, data: st.DataObject) -> None:
    whole = bytearray(tar_bytes([("a.png", A), ("ñ" * 150 + ".png", B), ("c.png", C)]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path / "d.tar", bytes(whole))
    for unit in units_of(path):
        assert len(list(read_unit(unit))) == len(unit.members)
        assert all(isinstance(problem, Problem) for problem in unit.problems)


def test_a_header_damaged_in_the_middle_is_reported(tmp_path: Path) -> None:
    whole = bytearray(tar_bytes([("a.png", A), ("b.png", B)], tarfile.GNU_FORMAT))
    whole[whole.index(b"b.png")] ^= 0xFF
    path = write(tmp_path / "m.tar", bytes(whole))
    assert names(index_shard(only_shard(path)).members) == ["a.png"]
    assert problems(path) == [(None, RejectReason.SHARD_UNREADABLE)]


def test_a_tar_that_changed_since_the_plan_is_rejected_member_by_member(tmp_path: Path) -> None:
    path = write(tmp_path / "ch.tar", tar_bytes([("a.png", A), ("b.png", B)]))
    (unit,) = units_of(path)
    write(tmp_path / "ch.tar", tar_bytes([(f"{i}.png", A) for i in range(20)]))
    rejects = list(read_unit(unit))
    assert [(r.member, r.reason) for r in rejects if isinstance(r, Reject)] == [
        ("a.png", RejectReason.SHARD_CHANGED),
        ("b.png", RejectReason.SHARD_CHANGED),
    ]
    (tmp_path / "ch.tar").unlink()
    assert {r.reason for r in read_unit(unit) if isinstance(r, Reject)} == {
        RejectReason.SHARD_CHANGED
    }
    with pytest.raises(StorageError, match=r"ch\.tar"):
        read_member(unit.shard, unit.members[0])


def test_only_headers_are_read_to_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "h.tar", tar_bytes([(f"{i}.png", bytes(50_000)) for i in range(20)]))
    shard = only_shard(path)
    taken = []
    original = io.BufferedReader.read

    class Counting(io.BufferedReader):
        def read(self, size: int | None = -1) -> bytes:
            data = original(self, size)
            taken.append(len(data))
            return data

    def counting_open(self: Path, mode: str = "r") -> Counting:
        return Counting(io.FileIO(str(self)))

    monkeypatch.setattr(Path, "open", counting_open)
    assert len(index_shard(shard).members) == 20
    assert sum(taken) < 60_000
