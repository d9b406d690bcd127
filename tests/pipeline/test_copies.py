"""The same picture in two places: asked once, decided alike by every process and every order.

B057 of the hard inputs, and its kin.
"""

import gzip
import itertools
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from image_bytes import encoded
from job_fixtures import Shot, job, oracle, png, scripted, shots, sidecar, write_shard, write_tar
from PIL import Image

from pipeline import copies
from pipeline.config import JobConfig
from pipeline.dataset import open_dataset
from pipeline.demo.demo import screens_dir
from pipeline.partition import Partition
from pipeline.run import run_job
from schemas.errors import EngineError
from schemas.records import Unit
from transforms.decode import ImageSettings, decode_image
from transforms.identity.contents import Content, ReadSettings
from transforms.identity.near import perceptual_hash

TABLES = ("annotations", "screens", "rejects")


def rows(config: JobConfig, table: str) -> list[dict[str, object]]:
    return sorted(open_dataset(config.output.dataset).table(table).to_pylist(), key=str)


def everything(config: JobConfig) -> list[list[dict[str, object]]]:
    return [rows(config, table) for table in TABLES]


def copied(config: JobConfig) -> dict[str, str | None]:
    """Where each screen is, by its own locator, and of what it is a copy; without folders."""
    found = {}
    for row in rows(config, "screens"):
        of = row["duplicate_of"]
        name = f"{Path(str(row['shard'])).name}#{row['member']}"
        found[name] = None if of is None else str(of).rpartition("/")[2]
    return found


def several(tmp_path: Path) -> tuple[list[Shot], list[Path]]:
    """Three shards that share pictures, also within one of them."""
    known = shots(5)
    again = {f"otra-{i}.{kind}": data for i, shot in enumerate(known[:2])
             for kind, data in (("png", png(shot)), ("json", sidecar(shot)))}  # fmt: skip
    first = write_shard(tmp_path / "a.tar", known)
    second = write_tar(tmp_path / "b.tar", again)
    third = write_shard(tmp_path / "c.tar", [*known[3:], *shots(2, "propia")])
    return known + shots(2, "propia"), [first, second, third]


def into(tmp_path: Path, name: str, shards: Sequence[Path], **changes: object) -> JobConfig:
    folder = tmp_path / name
    folder.mkdir()
    config = job(folder, *shards)
    return config.model_copy(update={"input": config.input.model_copy(update=changes)})


def test_kills_partitions_and_order_change_nothing(tmp_path: Path) -> None:
    known, shards = several(tmp_path)
    whole = into(tmp_path, "whole", shards)
    run_job(whole, engine_factory=scripted(oracle(known)))
    assert copied(whole) == {
        **{f"a.tar#pantalla-{i:03d}.png": None for i in range(5)},
        "b.tar#otra-0.png": "a.tar#pantalla-000.png",
        "b.tar#otra-1.png": "a.tar#pantalla-001.png",
        "c.tar#pantalla-003.png": "a.tar#pantalla-003.png",
        "c.tar#pantalla-004.png": "a.tar#pantalla-004.png",
        "c.tar#propia-000.png": None,
        "c.tar#propia-001.png": None,
    }
    ids = [row["sample_id"] for row in rows(whole, "annotations")]
    assert len(ids) == len(set(ids)) == 7 * 3

    killed = into(tmp_path, "killed", shards)
    for after in (3, 7):
        with pytest.raises(EngineError):
            run_job(killed, engine_factory=scripted(oracle(known), fail_after=after))
    run_job(killed, engine_factory=scripted(oracle(known)))
    assert everything(killed) == everything(whole)

    backwards = into(tmp_path, "backwards", list(reversed(shards)))
    for part in (3, 1, 2):  # the last partition, with the copies, first
        run_job(backwards, engine_factory=scripted(oracle(known)), partition=Partition(part, 3))
    assert everything(backwards) == everything(whole)


def test_copies_with_other_questions_ask_what_is_new(tmp_path: Path) -> None:
    shot = Shot("p", (320, 240), {"Guardar": (40, 40, 120, 70), "Abrir": (40, 100, 220, 130)})
    questions = [["Guardar"], ["Guardar", "Abrir"], ["Abrir", "Guardar"]]
    files: dict[str, bytes] = {}
    for i, asked in enumerate(questions):
        files[f"p{i}.png"] = png(shot)
        files[f"p{i}.json"] = json.dumps({"queries": asked}).encode()
    config = into(tmp_path, "d", [write_tar(tmp_path / "a.tar", files)])
    outcome = run_job(config, engine_factory=scripted(oracle([shot])))
    found = {(row["member"], row["instruction"]) for row in rows(config, "annotations")}
    assert found == {("p0.png", "Guardar"), ("p1.png", "Abrir")}
    counts = outcome.report.figures.counts
    assert (counts.queries, counts.samples, counts.rejects) == (5, 2, {"sample_duplicate": 3})
    (first, *_) = rows(config, "rejects")
    assert "a.tar#p0.png" in str(first["detail"])


def test_a_shard_that_joins_later_is_asked_nothing_again_though_it_sorts_first(
    tmp_path: Path,
) -> None:
    known = shots(4)
    config = into(tmp_path, "d", [write_shard(tmp_path / "b.tar", known)])
    run_job(config, engine_factory=scripted(oracle(known)))
    joined = into(tmp_path, "e", [tmp_path / "b.tar", write_shard(tmp_path / "a.tar", known[:3])])
    joined = joined.model_copy(update={"output": config.output})
    run_job(joined, engine_factory=scripted(oracle(known)))
    ids = [row["sample_id"] for row in rows(config, "annotations")]
    assert len(ids) == len(set(ids)) == 12
    assert copied(config)["a.tar#pantalla-001.png"] == "b.tar#pantalla-001.png"


def test_a_later_job_over_other_shards_knows_what_the_dataset_holds(tmp_path: Path) -> None:
    known = shots(3)
    config = into(tmp_path, "d", [write_shard(tmp_path / "b.tar", known)])
    run_job(config, engine_factory=scripted(oracle(known)))
    other = into(tmp_path, "e", [write_shard(tmp_path / "a.tar", [*known[:2], *shots(1, "z")])])
    other = other.model_copy(update={"output": config.output})
    run_job(other, engine_factory=scripted(oracle([*known, *shots(1, "z")])))
    ids = [row["sample_id"] for row in rows(config, "annotations")]
    assert len(ids) == len(set(ids)) == 12
    assert copied(config)["a.tar#pantalla-000.png"] == "b.tar#pantalla-000.png"


def test_copies_are_found_in_every_kind_of_shard(tmp_path: Path) -> None:
    known = shots(2)
    plain = write_shard(tmp_path / "a.tar", known)
    packed = tmp_path / "b.tar.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "x.png").write_bytes(png(known[0]))
    (folder / "x.json").write_bytes(sidecar(known[0]))
    table = pa.table({"image": [png(s) for s in known], "json": [sidecar(s) for s in known]})
    pq.write_table(table, tmp_path / "d.parquet")
    places = [plain, packed, folder, tmp_path / "d.parquet"]
    config = into(tmp_path, "data", places)
    run_job(config, engine_factory=scripted(oracle(known)))
    found = rows(config, "screens")
    first = {row["screen_id"]: row for row in found if row["duplicate_of"] is None}
    assert sorted(str(row["shard"]) for row in first.values()) == [str(plain)] * 2
    for row in found:
        of = first[row["screen_id"]]
        if row is not of:
            assert row["duplicate_of"] == f"{of['shard']}#{of['member']}"
    assert len(found) == 7
    assert len(rows(config, "annotations")) == 6


def test_a_second_start_hashes_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, shards = several(tmp_path)
    config = into(tmp_path, "d", shards)
    with pytest.raises(EngineError):
        run_job(config, engine_factory=scripted(oracle(known), fail_after=3))
    read: list[int] = []
    contents = copies.read_contents

    def counted(units: Sequence[Unit], settings: ReadSettings) -> Iterator[tuple[Unit, Content]]:
        read.append(sum(len(unit.members) for unit in units))
        return contents(units, settings)

    monkeypatch.setattr(copies, "read_contents", counted)
    run_job(config, engine_factory=scripted(oracle(known)))
    assert sum(read) == 0


def pages() -> Iterator[tuple[str, Image.Image]]:
    """Real pages with enough to see; a login form is too plain to be compared."""
    with tarfile.open(screens_dir() / "shop-and-notebooks.tar") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if member.name.endswith(".png") and stream is not None:
                image = decode_image(stream.read(), ImageSettings()).image
                if perceptual_hash(image):
                    yield member.name, image


def look_alikes(tmp_path: Path) -> Path:
    """Pages as they are, and two of them again as JPEG: other bytes, the same to the eye."""
    files: dict[str, bytes] = {}
    for i, (name, image) in enumerate(itertools.islice(pages(), 4)):
        files[f"a{i}-{name}"] = encoded(image, "PNG")
        if i < 2:
            files[f"z{i}.jpg"] = encoded(image, "JPEG", quality=80)
    files = dict(sorted(files.items()))
    for name in list(files):
        files[f"{name.rpartition('.')[0]}.json"] = b'{"queries": ["Guardar"]}'
    return write_tar(tmp_path / "a.tar", files)


@pytest.mark.parametrize("mode", ["mark", "skip", "keep_one"])
def test_look_alikes_are_marked_or_left_out(tmp_path: Path, mode: str) -> None:
    shard = look_alikes(tmp_path)
    config = into(tmp_path, "d", [shard], near_duplicates=mode)
    outcome = run_job(config, engine_factory=scripted(oracle([])))
    counts = outcome.report.figures.counts
    found = rows(config, "screens")
    assert all(len(str(row["perceptual_hash"])) == 64 for row in found)
    near = {str(row["member"]): row["near_duplicate_of"] for row in found}
    assert counts.members == 6
    if mode == "mark":
        assert (counts.screens, counts.rejects) == (6, {})
        assert str(near["z0.jpg"]).startswith(f"{shard}#")
        assert near["z1.jpg"] is not None
    else:
        assert (counts.screens, counts.rejects) == (4, {"near_duplicate": 2})
        details = [str(row["detail"]) for row in rows(config, "rejects")]
        assert all(f"looks like {shard}#" in detail for detail in details)
        assert outcome.exit_code == 0


def test_without_the_option_nothing_is_decoded_for_it(tmp_path: Path) -> None:
    known = shots(2)
    config = into(tmp_path, "d", [write_shard(tmp_path / "a.tar", known)])
    run_job(config, engine_factory=scripted(oracle(known)))
    assert [row["perceptual_hash"] for row in rows(config, "screens")] == [None, None]
