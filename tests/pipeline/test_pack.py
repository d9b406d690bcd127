"""`pantalla shard`: folders into tars that read back as the same screens."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_fixtures import job, oracle, png, scripted, shots, sidecar
from s3_server import S3Server
from typer.testing import CliRunner

from pipeline.cli.app import app
from pipeline.dataset import open_dataset
from pipeline.pack import Packed, pack, parse_size
from pipeline.run import run_job
from schemas.errors import ConfigError, InputError
from transforms.shards.tar_series import tar_size

KNOWN = shots(6)
LONG = "carpeta larga " * 12
SOURCE_COLUMNS = ["unit_id", "shard", "shard_kind", "byte_offset"]


def folder_of(root: Path) -> Path:
    """Nested, with spaces, NFD names, dots in names, a shared sidecar and things to leave out."""
    nfd = unicodedata.normalize("NFD", "año ñ")
    files = {
        "a.png": png(KNOWN[0]),
        "a.json": sidecar(KNOWN[0]),
        "a-b.png": png(KNOWN[1]),
        f"es/{nfd}/captura 1+1.v1.2.png": png(KNOWN[2]),
        f"es/{nfd}/captura 1+1.v1.2.json": sidecar(KNOWN[2]),
        f"{LONG}/x.png": png(KNOWN[3]),
        "compartida/login.png": png(KNOWN[4]),
        "compartida/login.bmp": png(KNOWN[5]),
        "compartida/login.json": sidecar(KNOWN[4]),
        "rota.png": png(KNOWN[5])[:-9],
        "leeme.txt": b"hola",
        "sola.json": b"{}",
        ".DS_Store": b"x",
    }
    for name, data in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return root


def screens(config_folder: Path, shards: list[str]) -> list[dict[str, object]]:
    config = job(config_folder, *map(Path, shards))
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    table = open_dataset(config.output.dataset).table("screens").drop_columns(SOURCE_COLUMNS)
    return sorted(table.to_pylist(), key=lambda row: str(row["member"]))


def names_in(tar: Path) -> list[str]:
    with tarfile.open(tar) as archive:
        return archive.getnames()


def counted(packed: Packed) -> bool:
    return packed.found == packed.packed + len(packed.left_out)


def test_a_packed_folder_reads_back_as_the_same_screens(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "capturas del año")
    packed = pack(str(source), str(tmp_path / "tars"), 10**9)
    assert counted(packed)
    assert packed.packed == 7
    assert Counter(item.reason for item in packed.left_out) == {
        "member_unsupported": 1,
        "sidecar_orphan": 1,
    }
    assert [Path(tar.uri).name for tar in packed.tars] == ["capturas-del-año-000000.tar"]
    from_folder = screens(tmp_path / "uno", [f"{source}/"])
    from_tars = screens(tmp_path / "dos", [tar.uri for tar in packed.tars])
    assert from_tars == from_folder
    assert len(from_folder) == 6  # all but the one that is cut


def test_what_tables_and_shard_toml_say_is_packed_as_sidecars(tmp_path: Path) -> None:
    source = tmp_path / "c"
    (source / "sub").mkdir(parents=True)
    for i in range(3):
        (source / f"t{i}.png").write_bytes(png(KNOWN[i]))
    (source / "sub" / "t9.png").write_bytes(png(KNOWN[3]))
    (source / "t0.bmp").write_bytes(png(KNOWN[4]))
    rows = [
        {"file_name": "t0.png", "app": "uno", "queries": [{"instruction": "Abrí el menú"}]},
        {"file_name": "t0.bmp", "app": "dos"},
        {"file_name": "t1.png", "locale": "es-MX"},
        {"file_name": "t2.png", "page_title": "Página ñ"},
        {"file_name": "sub/t9.png", "html_lang": "es"},
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (source / "metadata.jsonl").write_text(lines, encoding="utf-8")
    (source / "shard.toml").write_text('licence = "CC0-1.0"\nlocale = "es-AR"\n')
    (source / "sub" / "shard.toml").write_text('app = "otra"\n')
    packed = pack(str(source), str(tmp_path / "tars"), 10**9)
    assert counted(packed)
    from_folder = screens(tmp_path / "uno", [f"{source}/"])
    from_tars = screens(tmp_path / "dos", [tar.uri for tar in packed.tars])
    assert from_tars == from_folder
    assert [row["app"] for row in from_tars] == ["otra", "dos", "uno", None, None]
    assert {row["licence"] for row in from_tars} == {"CC0-1.0"}


def test_results_of_a_webvoyager_agent_keep_task_step_app_and_site(tmp_path: Path) -> None:
    source = tmp_path / "resultados"
    text = "Now given a task: Buscá «{}»  Please interact with https://tienda.example/ and get it"
    for number, task in enumerate(("taskTienda--3", "taskMapa--11")):
        (source / task).mkdir(parents=True)
        for step in (1, 2, 10):
            shot = KNOWN[number * 3 + min(step, 3) - 1]
            (source / task / f"screenshot{step}.png").write_bytes(png(shot))
        talk = [{"role": "user", "content": [{"type": "text", "text": text.format(task)}]}]
        (source / task / "interact_messages.json").write_text(json.dumps(talk))
        (source / task / "agent.log").write_text("INFO")
    (source / "shard.toml").write_text('licence = "CC-BY-4.0"\n')
    packed = pack(str(source), str(tmp_path / "tars"), 10**9)
    assert (packed.found, packed.packed, packed.left_out) == (6, 6, ())
    from_folder = screens(tmp_path / "uno", [f"{source}/"])
    from_tars = screens(tmp_path / "dos", [tar.uri for tar in packed.tars])
    assert from_tars == from_folder
    assert {(row["task"], row["app"], row["licence"]) for row in from_tars} == {
        ("Buscá «taskTienda--3»", "Tienda", "CC-BY-4.0"),
        ("Buscá «taskMapa--11»", "Mapa", "CC-BY-4.0"),
    }
    assert [row["step"] for row in from_tars] == [1, 10, 2, 1, 10, 2]


def test_a_sample_lies_together_and_names_are_ustar_or_pax(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "c")
    (tar,) = pack(str(source), str(tmp_path / "tars"), 10**9).tars
    names = names_in(Path(tar.uri))
    keys = [name.rpartition("/")[0] + "/" + Path(name).name.partition(".")[0] for name in names]
    runs = [key for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key]
    assert len(runs) == len(set(runs))
    assert names.count("compartida/login.json") == 1
    with tarfile.open(tar.uri) as archive:
        for info in archive:
            assert (info.mtime, info.uid, info.mode) == (0, 0, 0o644)
            needs_pax = not info.name.isascii() or len(info.name) > 255
            assert bool(info.pax_headers) >= needs_pax


def test_no_tar_is_empty_or_larger_than_asked_unless_one_sample_is(tmp_path: Path) -> None:
    source = tmp_path / "c"
    source.mkdir()
    for i in range(40):
        (source / f"{i:02d}.png").write_bytes(os.urandom(100_000))
        (source / f"{i:02d}.json").write_bytes(b"{}")
    (source / "20.png").write_bytes(os.urandom(3_000_000))
    packed = pack(str(source), str(tmp_path / "tars"), 1_000_000)
    assert packed.packed == 40
    sizes = [tar.byte_size for tar in packed.tars]
    assert [size for size in sizes if size > 1_000_000] == [max(sizes)]
    assert all(Path(tar.uri).stat().st_size == tar.byte_size for tar in packed.tars)
    assert all(tar.files >= 2 and tar.files % 2 == 0 for tar in packed.tars)
    assert sum(tar.files for tar in packed.tars) == 80


def test_packing_again_changes_nothing_and_completes_what_is_missing(tmp_path: Path) -> None:
    source, target = folder_of(tmp_path / "c"), tmp_path / "tars"
    first = pack(str(source), str(target), 1_000_000)
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    again = pack(str(source), str(target), 1_000_000)
    assert all(tar.was_there for tar in again.tars)
    Path(first.tars[-1].uri).unlink()
    assert not pack(str(source), str(target), 1_000_000).tars[-1].was_there
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before


def test_nothing_is_overwritten_and_old_tars_are_not_mixed_in(tmp_path: Path) -> None:
    source, target = folder_of(tmp_path / "c"), tmp_path / "tars"
    pack(str(source), str(target), 10**9)
    (source / "nueva.png").write_bytes(png(KNOWN[5]))
    before = (target / "c-000000.tar").read_bytes()
    with pytest.raises(ConfigError, match=r"c-000000\.tar: is there already"):
        pack(str(source), str(target), 10**9)
    assert (target / "c-000000.tar").read_bytes() == before
    (target / "c-000000.tar").rename(target / "c-000007.tar")
    with pytest.raises(ConfigError, match=r"also holds 1 tars.*c-000007\.tar"):
        pack(str(source), str(target), 10**9)


def test_a_killed_pack_leaves_no_half_tar_and_is_completed(tmp_path: Path) -> None:
    source, target = tmp_path / "c", tmp_path / "tars"
    source.mkdir()
    for i in range(300):
        (source / f"{i:03d}.png").write_bytes(os.urandom(200_000))
    words = [sys.executable, "-m", "pipeline.cli.app", "shard", str(source), str(target)]
    process = subprocess.Popen([*words, "--size", "5MB"], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not list(target.glob("*-000003.tar")) and time.monotonic() < end:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = sorted(target.glob("*.tar"))
    assert left
    assert len(list(target.iterdir())) <= len(left) + 1  # the one that was just being named
    assert all(len(names_in(tar)) > 0 for tar in left)
    whole = {tar.name: tar.read_bytes() for tar in left}
    packed = pack(str(source), str(target), 5_000_000)
    assert packed.packed == 300
    assert all(Path(target, name).read_bytes() == data for name, data in whole.items())
    read = [name for tar in packed.tars for name in names_in(Path(tar.uri))]
    assert sorted(read) == [f"{i:03d}.png" for i in range(300)]


@pytest.mark.s3
def test_from_s3_to_s3_gives_the_same_tars(tmp_path: Path, s3: S3Server) -> None:
    source = folder_of(tmp_path / "c")
    files = {str(f.relative_to(source)): f.read_bytes() for f in source.rglob("*") if f.is_file()}
    s3.put("empacar", {f"entra/c/{name}": data for name, data in files.items()})
    here = pack(str(source), str(tmp_path / "tars"), 10**9)
    words = ["shard", "s3://empacar/entra/c", "s3://empacar/sale", "--s3-endpoint", s3.endpoint]
    result = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    there = json.loads(result.stdout)
    assert (there["found"], there["packed"]) == (here.found, here.packed)
    body = s3.client().get_object(Bucket="empacar", Key="sale/c-000000.tar")["Body"].read()
    assert body == Path(here.tars[0].uri).read_bytes()


def test_what_is_no_folder_of_images_or_lies_in_it_is_refused(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "c")
    with pytest.raises(ConfigError, match="read at any depth"):
        pack(str(source), str(source / "tars"), 10**9)
    pack(str(source), str(tmp_path / "tars"), 10**9)
    with pytest.raises(InputError, match="no folder of images"):
        pack(str(tmp_path / "tars"), str(tmp_path / "otra"), 10**9)


def test_people_read_counts_that_add_up(tmp_path: Path) -> None:
    source = folder_of(tmp_path / "c")
    result = CliRunner().invoke(app, ["shard", str(source), str(tmp_path / "tars")])
    assert result.exit_code == 0
    assert "9 found = 7 images packed + 2 left out" in result.output
    assert "1 x member_unsupported: leeme.txt" in result.output


@pytest.mark.parametrize(
    ("text", "size"), [("1GB", 10**9), ("500 MB", 5 * 10**8), ("2GiB", 2**31), ("1000000", 10**6)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "grande", "-1GB", "10", "0"])
def test_sizes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--size"):
        parse_size(text)


@given(st.integers(0, 10**12))
def test_a_tar_is_its_content_an_end_mark_and_padding(content: int) -> None:
    assert tar_size(content) % tarfile.RECORDSIZE == 0
    assert content + 1024 <= tar_size(content) < content + 1024 + tarfile.RECORDSIZE
