"""`pantalla verify` passes what a run made, and finds each way in which it can be spoilt."""

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_fixtures import Shot, job, oracle, png, scripted, shots, sidecar, write_tar
from s3_server import S3Server

from pipeline.cli.app import main
from pipeline.config import OutputConfig
from pipeline.dataset import open_dataset, open_root
from pipeline.run import run_job
from pipeline.verify import Verdict, verify_dataset
from pipeline.verify.asked import asked_as
from schemas.commits import DatasetHead, head_to_json, read_head
from schemas.geometry import FrameKind, Size
from schemas.ids import sha256_hex
from schemas.tables import GOLD, SCHEMA_VERSION, TABLES
from transforms.compose import Asked, ComposeSettings, id_of_sample
from transforms.profiles.load import list_profiles, load_profile
from transforms.rows import Row, to_table

KNOWN = shots(4)
Rows = list[dict[str, object]]


def files() -> dict[str, bytes]:
    members = {"rota.png": png(Shot("rota"))[:150]}
    for shot in KNOWN:
        members[f"{shot.name}.png"] = png(shot)
        members[f"{shot.name}.json"] = sidecar(shot)
    return members


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verificar")
    config = job(folder, write_tar(folder / "a.tar", files()))
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    return Path(config.output.dataset)


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "dataset"))


def verified(root: Path, *, shards: bool = False) -> Verdict:
    return verify_dataset(open_root(str(root)), shards=shards)


def records(root: Path) -> list[Path]:
    return sorted((root / "_commits").glob("*.json"))


def part(root: Path, table: str) -> Path:
    """The first part of a table that has rows."""
    found = sorted((root / table).glob("*.parquet"))
    return next(path for path in found if pq.read_metadata(path).num_rows)


def edit_record(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    record = json.loads(path.read_bytes())
    change(record)
    path.write_text(json.dumps(record))


def sign(root: Path, path: Path, data: bytes, rows: int) -> None:
    """Put other bytes in a part and let its record agree: only what is inside can tell."""
    path.write_bytes(data)
    name = f"{path.parent.name}/{path.name}"
    for record_path in records(root):
        record = json.loads(record_path.read_bytes())
        for ref in record["parts"]:
            if ref["path"] == name:
                ref.update(rows=rows, byte_size=len(data), sha256=sha256_hex(data))
        record_path.write_text(json.dumps(record))


def edit_rows(root: Path, table: str, change: Callable[[Rows], object]) -> None:
    path = part(root, table)
    rows = pq.read_table(path).to_pylist()
    change(rows)
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[table]), sink)
    sign(root, path, sink.getvalue(), len(rows))


def test_what_a_run_made_is_whole(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = verified(made, shards=True)
    assert (verdict.findings, verdict.problems) == ([], 0)
    assert (verdict.units, verdict.parts, verdict.screens_read) == (3, 9, 4)
    assert verdict.rows == {"annotations": 12, "screens": 4, "rejects": 1}
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(made), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (ended.value.code, told["whole"], told["rows"]["screens"]) == (0, True, 4)


def test_it_needs_no_shards_unless_they_are_asked_for(root: Path, made: Path) -> None:
    shard = made.parent / "a.tar"
    away = shard.rename(shard.with_suffix(".away"))
    try:
        assert verified(root).whole
        verdict = verified(root, shards=True)
        assert [finding.check for finding in verdict.findings] == ["shard"] * 4
        assert "a.tar#pantalla-000.png" in verdict.findings[0].where
    finally:
        away.rename(shard)


def flip(root: Path) -> None:
    path = part(root, "annotations")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(bytes(data))


def cut(root: Path) -> None:
    path = part(root, "screens")
    path.write_bytes(path.read_bytes()[:-9])


def lose(root: Path) -> None:
    part(root, "annotations").unlink()


def swap(root: Path) -> None:
    one, other = sorted((root / "annotations").glob("*.parquet"))[:2]
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def swap_signed(root: Path) -> None:
    one, other = sorted((root / "annotations").glob("*.parquet"))[:2]
    first, second = one.read_bytes(), other.read_bytes()
    sign(root, one, second, pq.read_metadata(other).num_rows)
    sign(root, other, first, pq.read_metadata(io.BytesIO(first)).num_rows)


def counts(root: Path) -> None:
    edit_record(records(root)[0], lambda r: r["counts"].update(samples=99))


def hidden_counts(root: Path) -> None:
    """Balanced, but not what the rows say."""
    edit_record(
        records(root)[0],
        lambda r: r["counts"].update(
            screens=r["counts"]["screens"] + 1, members=r["counts"]["members"] + 1
        ),
    )


def broken_record(root: Path) -> None:
    records(root)[0].write_bytes(records(root)[0].read_bytes()[:-20])


def renamed_record(root: Path) -> None:
    records(root)[0].rename(root / "_commits" / "otra.json")


def other_settings(root: Path) -> None:
    edit_record(records(root)[0], lambda r: r.update(fingerprint="0" * 64))


def doubled_unit(root: Path) -> None:
    path = records(root)[0]
    record = json.loads(path.read_bytes())
    (root / "_commits" / "copia.json").write_text(json.dumps({**record, "unit_id": "copia"}))


def lost_record(root: Path) -> None:
    records(root)[0].unlink()


def broken_order(root: Path) -> None:
    next((root / "_order").iterdir()).write_text("[]")


def part_of_no_table(root: Path) -> None:
    edit_record(records(root)[0], lambda r: r["parts"].pop())


def other_ingredients(root: Path) -> None:
    head = json.loads((root / "_dataset.json").read_bytes())
    head["ingredients"]["sampling"]["k"] = 77
    (root / "_dataset.json").write_text(json.dumps(head))


def broken_head(root: Path) -> None:
    (root / "_dataset.json").write_text("{}")


def old_schema(root: Path) -> None:
    path = part(root, "screens")
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"pantalla.schema_version": b"0.9.0"}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    sign(root, path, sink.getvalue(), table.num_rows)


def no_schema(root: Path) -> None:
    path = part(root, "screens")
    table = pq.read_table(path)
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({}), sink)
    sign(root, path, sink.getvalue(), table.num_rows)


def other_types(root: Path) -> None:
    path = part(root, "screens")
    table = pq.read_table(path)
    index = table.column_names.index("width")
    changed = table.set_column(index, "width", table["width"].cast(pa.int64()))
    sink = io.BytesIO()
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), sink)
    sign(root, path, sink.getvalue(), table.num_rows)


@pytest.mark.parametrize(
    ("spoil", "check", "said"),
    [
        (flip, "part", "SHA-256"),
        (cut, "part", "bytes, "),
        (lose, "part", "cannot read"),
        (swap, "part", "committed"),
        (swap_signed, "rows", "the unit_id of another unit"),
        (counts, "counts", "do not add up"),
        (hidden_counts, "counts", "screens: "),
        (broken_record, "record", "not a commit record"),
        (renamed_record, "record", "is the record of unit"),
        (other_settings, "record", "other settings than the head"),
        (doubled_unit, "doubled", "commit records name the same part"),
        (lost_record, "lost", "2 units have a record that can be read, 3 had one"),
        (broken_order, "order", "not a list of units"),
        (part_of_no_table, "record", "names parts of annotations, screens"),
        (other_ingredients, "head", "fingerprint is not that of the ingredients"),
        (broken_head, "head", "not the head file"),
        (old_schema, "schema", "written under schema 0.9.0"),
        (no_schema, "schema", "not screens"),
        (other_types, "schema", "field width is int64, frozen is int32"),
    ],
)
def test_a_spoilt_file_is_found(
    root: Path, spoil: Callable[[Path], None], check: str, said: str
) -> None:
    spoil(root)
    verdict = verified(root)
    found = [finding for finding in verdict.findings if finding.check == check]
    assert any(said in finding.detail for finding in found), verdict.findings
    assert not verdict.whole


def first_with_box(rows: Rows) -> dict[str, object]:
    return next(row for row in rows if row["x1"] is not None)


def place(**changes: float | None) -> Callable[[Rows], object]:
    return lambda rows: first_with_box(rows).update(changes)


def every(**changes: object) -> Callable[[Rows], object]:
    def change(rows: Rows) -> None:
        for row in rows:
            row.update(changes)

    return change


def first(**changes: object) -> Callable[[Rows], object]:
    return lambda rows: rows[0].update(changes)


def candidate(rows: Rows) -> None:
    row = first_with_box(rows)
    row["candidates"][0]["x2"] = -5.0  # type: ignore[index]


def hotter(rows: Rows) -> None:
    rows[0]["sampling"]["temperature"] = 1.25  # type: ignore[index]


@pytest.mark.parametrize(
    ("table", "change", "check", "said"),
    [
        ("annotations", place(x2=10_000.0), "geometry", "1 rows whose geometry is outside"),
        ("annotations", place(x1=float("nan")), "geometry", "1 rows whose geometry is outside"),
        ("annotations", place(x1=200.0, x2=100.0), "geometry", "not in order"),
        ("annotations", place(y2=None), "geometry", "not in order"),
        ("annotations", place(y=-3.0), "geometry", "outside the image"),
        ("annotations", candidate, "geometry", "1 candidates whose geometry cannot be"),
        ("annotations", first(frame="norm_1000"), "rows", "another frame than original_px"),
        ("annotations", first(status="bien"), "rows", "an unknown status"),
        ("annotations", first(route="nada"), "rows", "an unknown route"),
        ("annotations", first(probability=1.5), "rows", "not in 0..1"),
        ("annotations", first(probability=float("nan")), "rows", "not in 0..1"),
        ("annotations", first(screen_id="f" * 64), "rows", "is not among the unit's screens"),
        ("annotations", first(screen_id="cualquiera"), "rows", "no screen_id"),
        ("annotations", first(image_width=7), "rows", "another size than its annotations say"),
        ("annotations", first(element_index=3), "rows", "lack an element or have one twice"),
        ("annotations", lambda rows: rows.append(rows[0]), "rows", "have one twice"),
        ("annotations", lambda rows: rows.pop(), "counts", "in the rows"),
        ("annotations", every(shard="/otro.tar"), "rows", "the shard of another unit"),
        ("annotations", first(prompt_tokens=1), "counts", "prompt_tokens"),
        ("screens", lambda rows: rows.pop(), "counts", "screens: "),
        ("screens", every(query_count=50), "counts", "0 of its screens"),
        ("annotations", first(sample_id="0" * 32), "asked", "does not follow from what was asked"),
        ("annotations", first(instruction="Otra cosa"), "asked", "does not follow"),
        ("annotations", first(prompt="Otra cosa"), "asked", "does not follow"),
        ("annotations", first(screen_id="f" * 64), "asked", "does not follow"),
        ("annotations", every(model="otro/modelo"), "asked", "another model than the head says"),
        ("annotations", every(model_revision="1"), "asked", "another model_revision than"),
        ("annotations", every(profile="holo2"), "asked", "another profile than the head says"),
        ("annotations", hotter, "asked", "other sampling settings than the head says"),
        ("annotations", place(x=1.0, y=1.0), "geometry", "1 rows whose point lies outside"),
        ("annotations", every(member=""), "rows", "an empty member name"),
        ("screens", first(member=""), "rows", "an empty member name"),
        ("rejects", first(member=""), "rows", "an empty member name"),
        ("screens", first(duplicate_of="/b.tar#no.png"), "rows", "neither a screen nor a reject"),
        ("rejects", first(member="pantalla-000.png"), "doubled", "1 times the same shard member"),
        ("rejects", first(reason="porque"), "rows", "an unknown reason"),
        ("rejects", lambda rows: rows.clear(), "counts", "rejects"),
    ],
)
def test_a_spoilt_row_is_found_though_its_hash_agrees(
    root: Path, table: str, change: Callable[[Rows], object], check: str, said: str
) -> None:
    edit_rows(root, table, change)
    verdict = verified(root)
    found = [finding for finding in verdict.findings if finding.check == check]
    assert any(said in finding.detail for finding in found), verdict.findings


def gold_of(root: Path, **changes: object) -> list[Row]:
    """A row of gold about the first sample, as a person may have written it."""
    row = pq.read_table(part(root, "annotations")).to_pylist()[0]
    copied = {name: row[name] for name in GOLD.names if name in row}
    said = {
        "instruction_asked": row["instruction"],
        "outcome": "absent",
        "boxes": [],
        "reviewers": ["1"],
        "annotation_ids": [1],
        "review_ids": ["1"],
        "verdicts": ["absent"],
        "reviewed_at": datetime(2026, 12, 1, tzinfo=UTC),
        "answer": {"status": row["status"]},
    }
    return [{**copied, **said, **changes}]


def write_gold_file(root: Path, rows: list[Row]) -> None:
    (root / "gold").mkdir()
    pq.write_table(to_table("gold", rows), root / "gold" / "gold.parquet")


def test_a_gold_file_that_is_about_the_dataset_is_whole(root: Path) -> None:
    write_gold_file(root, gold_of(root))
    verdict = verified(root)
    assert (verdict.findings, verdict.rows["gold"]) == ([], 1)


def test_a_part_that_cannot_be_read_is_one_finding_and_its_gold_is_none(root: Path) -> None:
    write_gold_file(root, gold_of(root))
    part(root, "annotations").write_bytes(b"no es Parquet")
    assert {finding.check for finding in verified(root).findings} == {"part"}


def garbage_gold(root: Path) -> None:
    (root / "gold").mkdir()
    (root / "gold" / "gold.parquet").write_bytes(b"no es Parquet")


@pytest.mark.parametrize(
    ("spoil", "check", "said"),
    [
        (garbage_gold, "part", "cannot be read"),
        (
            lambda root: write_gold_file(root, gold_of(root, sample_id="0" * 32)),
            "gold",
            "1 rows of samples that are not in the dataset",
        ),
        (
            lambda root: write_gold_file(root, gold_of(root) * 2),
            "gold",
            "1 rows of samples that it holds already",
        ),
        (
            lambda root: write_gold_file(root, gold_of(root, x1=5.0, y1=5.0, x2=9999.0, y2=9.0)),
            "gold",
            "1 rows whose geometry is outside the image",
        ),
        (
            lambda root: write_gold_file(root, gold_of(root, frame="norm_1000")),
            "gold",
            "1 rows in another frame than original_px",
        ),
    ],
)
def test_a_spoilt_gold_file_is_found(
    root: Path, spoil: Callable[[Path], None], check: str, said: str
) -> None:
    spoil(root)
    (finding,) = verified(root).findings
    assert finding.where.endswith("gold/gold.parquet")
    assert (finding.check, said in finding.detail) == (check, True)


def test_a_point_beside_its_box_is_right_where_the_answer_said_both(root: Path) -> None:
    def beside(rows: Rows) -> None:
        first_with_box(rows).update(x=1.0, y=1.0, flags=["point_outside_box"])

    edit_rows(root, "annotations", beside)
    assert verified(root).findings == []


def test_what_is_unusual_and_right_is_no_finding(tmp_path: Path) -> None:
    """Copies, look-alikes, a name twice in a tar, notices, and rejects that share a sidecar."""
    members = files()
    members |= {
        "copia.png": png(KNOWN[0]),
        "otra-copia.png": png(KNOWN[0]),
        "copia.json": b"no es JSON",
        "sin-texto.png": png(Shot("sin-texto", (300, 200))),
        "sin-texto.json": b'{"app": [], "queries": [{"instruction": ""}, "Abrir", "Abrir"]}',
        "tira.png": png(Shot("tira", (3000, 10))),
        "nota.txt": b"x",
    }
    shard = write_tar(tmp_path / "a.tar", members)
    with tarfile.open(shard, "a") as archive:
        info = tarfile.TarInfo("copia.png")
        info.size = len(members["copia.png"])
        archive.addfile(info, io.BytesIO(members["copia.png"]))
    config = job(tmp_path, shard)
    source = config.input.model_copy(update={"near_duplicates": "skip"})
    config = config.model_copy(update={"input": source})
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    root = Path(config.output.dataset)
    verdict = verified(root, shards=True)
    assert verdict.findings == []
    reasons = open_dataset(str(root)).table("rejects")["reason"].to_pylist()
    assert {"member_duplicate", "near_duplicate", "sidecar_invalid", "image_too_narrow"} <= set(
        reasons
    )
    assert any(row["duplicate_of"] for row in open_dataset(str(root)).table("screens").to_pylist())


@pytest.mark.parametrize("name", list_profiles())
def test_ids_follow_from_the_head_under_every_profile(name: str) -> None:
    profile = load_profile(name)
    dumped = profile.model_dump(
        mode="json", exclude={"engine", "sources", "warning", "probe_screens"}
    )
    model = {"checkpoint": "casa/modelo", "revision": "abc", "frame": "seen_px"}
    ingredients = {
        "model": model,
        "profile": dumped,
        "sampling": {"k": 5, "temperature": None, "seed": 3},
    }
    head = DatasetHead(fingerprint="", schema_version=SCHEMA_VERSION, ingredients=ingredients)
    said = asked_as(read_head(head_to_json(head), "head"))
    assert said is not None
    settings = ComposeSettings(model="casa/modelo", revision="abc", k=5, seed=3)
    for kind in profile.tasks:
        asked = Asked("f" * 64, kind, "Abrir", "Abrir", Size(640, 480))
        expected = id_of_sample(asked, profile, FrameKind.SEEN_PX, settings)
        assert id_of_sample(asked, said.profile, said.frame, said.settings) == expected


def test_a_sample_in_two_units_is_found(root: Path) -> None:
    paths = sorted(p for p in (root / "annotations").glob("*.parquet"))
    with_rows = [path for path in paths if pq.read_metadata(path).num_rows]
    ids = pq.read_table(with_rows[1])["sample_id"].to_pylist()

    def change(rows: Rows) -> None:
        rows[0]["sample_id"] = ids[0]

    edit_rows(root, "annotations", change)
    verdict = verified(root)
    (finding,) = [finding for finding in verdict.findings if finding.check == "doubled"]
    assert finding.detail == "1 times the same sample"
    assert finding.where.count(",") == 1


def test_leftovers_are_counted_and_do_no_harm(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = part(root, "annotations").read_bytes()
    (root / "annotations" / "ffff-0-1.parquet").write_bytes(data)
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(root)])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "Leftovers  1 parts" in said
    assert "Verdict    whole" in said


def test_units_that_no_run_has_come_to_are_told_and_are_no_problem(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "report.json").unlink()  # as after a kill: the parts of that unit are leftovers
    lost_record(root)
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(root)])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "Waiting    1 units" in said


def test_the_command_says_what_is_wrong(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(root)
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(root)])
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert part(root, "screens").parent.parent.name in said
    assert "SHA-256" in said


def test_a_dataset_on_s3_is_verified_as_well(s3: S3Server, tmp_path: Path) -> None:
    s3.put("verificar", {"x": b"1"})
    shard = write_tar(tmp_path / "a.tar", files())
    output = OutputConfig(dataset="s3://verificar/datos", s3_endpoint=s3.endpoint)
    run_job(job(tmp_path, shard, output=output), engine_factory=scripted(oracle(KNOWN)))
    assert verify_dataset(open_dataset(output.dataset, s3.endpoint), shards=True).whole
    key = next(
        item["Key"]
        for item in s3.client().list_objects_v2(Bucket="verificar")["Contents"]
        if item["Key"].startswith("datos/annotations/")
    )
    s3.put("verificar", {key: b"otra cosa"})
    verdict = verify_dataset(open_dataset(output.dataset, s3.endpoint))
    assert {finding.check for finding in verdict.findings} == {"part"}
