"""`pantalla rejects`: what was rejected, grouped, and a look at each."""

import gzip
import io
import json
import os
import random
import shlex
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from job_fixtures import job, oracle, png, scripted, shots, sidecar, write_tar
from s3_server import S3Server
from typer.testing import CliRunner

from pipeline.cli.app import app, main
from pipeline.dataset import open_dataset
from pipeline.rejects import group_rejects, reject_rows, shell_word
from pipeline.run import run_job
from pipeline.take_out import safe_name, take_out
from schemas.errors import ConfigError, InputError
from schemas.ids import sha256_hex
from schemas.records import Reject
from transforms.shards import index_shard, list_shards, read_unit, split_units

KNOWN = shots(3)
WHOLE = png(KNOWN[0])
CUT = png(KNOWN[1])[:-20]
FILES = {
    "a/buena.png": WHOLE,
    "a/buena.json": sidecar(KNOWN[0]),
    "a/cortada ñ.png": CUT,
    "a/cortada ñ.json": sidecar(KNOWN[1]),
    "notas.txt": b"no es una imagen",
    "huerfano.json": b"{}",
    "vacia.png": b"",
}


def command(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("rechazos")
    shard = write_tar(folder / "mezcla.tar", FILES)
    config = job(folder, shard)
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    return config.output.dataset


def test_every_reject_is_in_one_group_with_an_example(dataset: str) -> None:
    found = open_dataset(dataset)
    groups = group_rejects(reject_rows(found))
    assert sum(group.count for group in groups) == found.table("rejects").num_rows
    reasons = {(group.stage, group.reason): group.count for group in groups}
    assert reasons == {
        ("plan", "member_unsupported"): 1,
        ("plan", "sidecar_orphan"): 1,
        ("decode", "image_truncated"): 1,
        ("decode", "image_empty"): 1,
    }
    assert [group.stage for group in groups] == ["plan", "plan", "decode", "decode"]


def test_the_command_shown_takes_the_very_bytes_out(dataset: str, tmp_path: Path) -> None:
    for group in json.loads(command("rejects", dataset, "--json"))["groups"]:
        example = group["example"]
        program, *words = shlex.split(example["take_out"])
        assert program == "pantalla"
        target = tmp_path / group["reason"]
        printed = command(*words, "--to", str(target))
        assert FILES[example["member"]] in {file.read_bytes() for file in target.iterdir()}
        if example["screen_id"] is not None:
            assert example["screen_id"] in printed
    assert {file.name for file in (tmp_path / "image_truncated").iterdir()} == {
        "a_cortada ñ.png",
        "a_cortada ñ.json",
    }


def test_a_reject_with_bytes_has_their_hash(dataset: str) -> None:
    for row in reject_rows(open_dataset(dataset)):
        expected = sha256_hex(FILES[row.member or ""]) if row.stage == "decode" else None
        assert row.screen_id == expected


def test_a_file_that_changed_since_the_plan_has_the_hash_of_what_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    file = tmp_path / "c" / "x.png"
    file.write_bytes(WHOLE)
    (shard,) = list_shards([f"{tmp_path}/c/"])
    (unit,) = split_units(shard, index_shard(shard), 8)
    file.write_bytes(WHOLE + b"mas")
    (item,) = read_unit(unit)
    assert isinstance(item, Reject)
    assert (item.reason, item.screen_id) == ("shard_changed", sha256_hex(WHOLE + b"mas"))


def test_people_read_reason_count_place_and_command(dataset: str) -> None:
    text = command("rejects", dataset)
    assert "image_truncated  at decode  1" in text
    assert "no IEND chunk" in text
    assert "'a/cortada ñ.png'" in text
    only = command("rejects", dataset, "--reason", "image_empty")
    assert "vacia.png" in only and "cortada" not in only
    listed = json.loads(command("rejects", dataset, "--reason", "image_empty", "--json"))
    assert [row["member"] for row in listed["rejects"]] == ["vacia.png"]


def test_a_reason_that_does_not_exist_names_those_that_do(dataset: str) -> None:
    with pytest.raises(ConfigError, match="image_truncated"):
        list(reject_rows(open_dataset(dataset), "cortada"))


def test_a_dataset_without_rejects_says_so(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", {"x.png": WHOLE, "x.json": sidecar(KNOWN[0])})
    config = job(tmp_path, shard)
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    assert "nothing was rejected" in command("rejects", config.output.dataset)


def as_tar(folder: Path) -> str:
    return str(write_tar(folder / "s.tar", FILES))


def as_gzip(folder: Path) -> str:
    with tarfile.open(folder / "s.tar.gz", "w:gz") as archive:
        for name, data in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(folder / "s.tar.gz")


def as_folder(folder: Path) -> str:
    for name, data in FILES.items():
        file = folder / "s" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return f"{folder}/s/"


def as_zip(folder: Path) -> str:
    with zipfile.ZipFile(folder / "s.zip", "w") as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    return str(folder / "s.zip")


KINDS = {"tar": as_tar, "gzip": as_gzip, "folder": as_folder, "zip": as_zip}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a/cortada ñ.png", "notas.txt", "huerfano.json", "vacia.png"])
def test_any_file_of_any_kind_of_shard_can_be_taken_out(
    tmp_path: Path, kind: str, name: str
) -> None:
    ((path, digest, _), *_) = take_out(KINDS[kind](tmp_path), name, tmp_path / "fuera")
    assert path.read_bytes() == FILES[name]
    assert digest == sha256_hex(FILES[name])


def test_a_row_of_parquet_is_taken_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image": [WHOLE, CUT, None]}), tmp_path / "s.parquet")
    ((path, *_),) = take_out(f"{tmp_path}/s.parquet", "row-00000001", tmp_path / "fuera")
    assert path.read_bytes() == CUT
    with pytest.raises(InputError, match="null"):
        take_out(f"{tmp_path}/s.parquet", "row-00000002", tmp_path / "fuera")


@pytest.mark.s3
@pytest.mark.parametrize("shard", ["s.tar", "s/"])
def test_a_member_on_s3_is_taken_out(tmp_path: Path, s3: S3Server, shard: str) -> None:
    as_tar(tmp_path)
    s3.put("fuera", {f"s/{name}": data for name, data in FILES.items()})
    s3.put("fuera", {"s.tar": (tmp_path / "s.tar").read_bytes()})
    words = ("rejects", "-", "--take-out", f"s3://fuera/{shard}", "a/cortada ñ.png")
    command(*words, "--to", f"{tmp_path}/aca", "--input-s3-endpoint", s3.endpoint)
    assert (tmp_path / "aca" / "a_cortada ñ.png").read_bytes() == CUT


def test_both_members_of_one_name_are_taken_out(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "s.tar", "w") as archive:
        for data in (WHOLE, CUT):
            info = tarfile.TarInfo("x.png")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    found = take_out(str(tmp_path / "s.tar"), "x.png", tmp_path / "fuera")
    assert [path.name for path, *_ in found] == ["x.png", "x (2).png"]
    assert [path.read_bytes() for path, *_ in found] == [WHOLE, CUT]


def test_of_a_member_that_the_shard_cuts_there_is_what_there_is(tmp_path: Path) -> None:
    data = Path(as_tar(tmp_path)).read_bytes()
    start = data.index(CUT)
    (tmp_path / "cortado.tar").write_bytes(data[: start + 100])
    (file, *_) = take_out(f"{tmp_path}/cortado.tar", "a/cortada ñ.png", tmp_path / "fuera")
    assert file.path.read_bytes() == CUT[:100]
    assert f"100 of {len(CUT)} bytes" in file.damage


def test_of_a_member_that_a_compressed_shard_cuts_there_is_what_there_is(tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(400_000)  # what cannot be packed is cut where we cut
    plain = write_tar(tmp_path / "s.tar", {"a.png": WHOLE, "ruido.png": noise}).read_bytes()
    packed = {
        "s.tar.gz": gzip.compress(plain),
        "s.tar.zst": zstandard.ZstdCompressor().compress(plain),
    }
    for name, data in packed.items():
        (tmp_path / name).write_bytes(data[:200_000])
        shown = command(
            *("rejects", "-", "--take-out", f"{tmp_path}/{name}", "ruido.png"),
            *("--to", f"{tmp_path}/fuera-{name}"),
        )
        found = (tmp_path / f"fuera-{name}" / "ruido.png").read_bytes()
        assert noise.startswith(found)
        assert len(found) > 50_000
        assert f"{len(found)} of 400000 bytes" in shown


def test_of_a_damaged_entry_of_a_zip_there_is_what_there_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr("x.png", WHOLE)
        archive.writestr("y.png", WHOLE * 50, zipfile.ZIP_DEFLATED)
    data = bytearray((tmp_path / "s.zip").read_bytes())
    data[data.index(WHOLE) + 50] ^= 1
    packed = data.index(b"y.png") + 5
    data[packed + 200 : packed + 230] = bytes(30)
    (tmp_path / "s.zip").write_bytes(data)
    (stored,) = take_out(f"{tmp_path}/s.zip", "x.png", tmp_path / "fuera")
    assert len(stored.path.read_bytes()) == len(WHOLE)
    assert "CRC-32" in stored.damage
    (deflated,) = take_out(f"{tmp_path}/s.zip", "y.png", tmp_path / "fuera")
    assert deflated.damage


@pytest.mark.parametrize("shard", ["s/", "s.tar"])
def test_a_name_that_is_not_utf8_is_taken_out_under_the_name_tables_show(
    tmp_path: Path, shard: str
) -> None:
    raw = b"p\xe1gina.png"
    (tmp_path / "s").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/s/" + raw)).write_bytes(CUT)
    with tarfile.open(tmp_path / "s.tar", "w", encoding="cp1252") as archive:
        info = tarfile.TarInfo("página.png")
        info.size = len(CUT)
        archive.addfile(info, io.BytesIO(CUT))
    for number, name in enumerate(["página.png", os.fsdecode(raw)]):
        (file,) = take_out(f"{tmp_path}/{shard}", name, tmp_path / f"fuera{number}")
        assert (file.path.name, file.path.read_bytes()) == ("página.png", CUT)


def encrypted(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "s.zip", "w") as archive:
        archive.writestr("x.png", WHOLE)
    data = bytearray((folder / "s.zip").read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (folder / "s.zip").write_bytes(data)
    return folder / "s.zip"


def linked(folder: Path) -> Path:
    with tarfile.open(folder / "s.tar", "w") as archive:
        info = tarfile.TarInfo("x.png")
        info.type, info.linkname = tarfile.SYMTYPE, "y.png"
        archive.addfile(info)
    return folder / "s.tar"


def zip_without_directory(folder: Path) -> Path:
    (folder / "s.zip").write_bytes(Path(as_zip(folder)).read_bytes()[:200])
    return folder / "s.zip"


def null_row(folder: Path) -> Path:
    pq.write_table(pa.table({"image": [WHOLE, None]}), folder / "s.parquet")
    return folder / "s.parquet"


@pytest.mark.parametrize(
    ("make", "member", "said"),
    [
        (encrypted, "x.png", "encrypted; unpack it"),
        (linked, "x.png", "a link or device"),
        (zip_without_directory, "x.png", "holds nothing named x.png"),
        (null_row, "row-00000001", "null"),
    ],
)
def test_where_there_are_no_bytes_the_store_is_not_blamed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], Path],
    member: str,
    said: str,
) -> None:
    shard = make(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["rejects", "-", "--take-out", str(shard), member, "--to", f"{tmp_path}/fuera"])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_nothing_is_overwritten_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    shard = as_tar(tmp_path)
    (tmp_path / "notas.txt").write_text("mío")
    with pytest.raises(ConfigError, match="is there already"):
        take_out(shard, "notas.txt", tmp_path)
    assert (tmp_path / "notas.txt").read_text() == "mío"
    with pytest.raises(InputError, match=r"holds nothing named nada\.png"):
        take_out(shard, "nada.png", tmp_path)


@given(st.text(), st.integers(0, 20))
def test_a_name_never_leaves_its_folder(member: str, number: int) -> None:
    name = safe_name(member, number)
    assert name == Path(name).name
    assert name not in {"", ".", ".."}
    assert not name.startswith(".")
    assert name.isprintable() or not member.isprintable()
    assert len(name.encode()) <= 255


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("/abs/x.png", "_abs_x.png"),
        ("\x1b[31mrojo.png", "_[31mrojo.png"),
        ("ñ" * 300 + ".png", "ñ" * 98 + ".png"),
        ("...", "member"),
        ("año 1+1#2.png", "año 1+1#2.png"),
    ],
)
def test_unsafe_names(member: str, expected: str) -> None:
    assert safe_name(member) == expected


def test_a_word_of_a_command_never_steers_a_terminal() -> None:
    assert shell_word("a b.png") == "'a b.png'"
    assert shell_word("it's\x1b[2J\u202e.png") == r"$'it\'s\x1b[2J\xe2\x80\xae.png'"
