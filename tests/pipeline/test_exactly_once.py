"""Two jobs on one dataset: units are shared, parts are never mixed, whatever the store can do."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard
from s3_proxy import Faults, s3_proxy
from s3_server import S3Server
from slow_job import COUNT

from pipeline.clean import sweep
from pipeline.config import OutputConfig, SamplingConfig
from pipeline.dataset import Dataset, open_root
from pipeline.fingerprint import claim_dataset, creates_once, fingerprint_of
from pipeline.run import run_job
from schemas.commits import CommitRecord, UnitCounts, WorkerStats
from schemas.errors import DatasetError
from schemas.ids import sha256_hex
from schemas.records import Shard, ShardKind, Unit
from transforms import commit as commit_module
from transforms.commit import DatasetWriter
from transforms.rows import to_table
from transforms.storage import join_uri

INGREDIENTS = {"model": {"checkpoint": "uno"}}
OTHER = {"model": {"checkpoint": "otro"}}
UNIT = Unit("u1", Shard("/s/a.tar", ShardKind.TAR), 0, ())
SCRIPT = Path(__file__).with_name("slow_job.py")
ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 240


def commit(root: str, endpoint: str | None, detail: str, ingredients=INGREDIENTS) -> CommitRecord:  # noqa: ANN001
    """Commit one unit with one reject that says `detail`, as one job of several would."""
    reject = {
        "unit_id": "u1",
        "shard": "/s/a.tar",
        "stage": "decode",
        "reason": "image_corrupt",
        "detail": detail,
    }
    rows = {"annotations": [], "screens": [], "rejects": [reject]}
    counts = UnitCounts(members=1, members_rejected=1, rejects={"image_corrupt": 1})
    writer = DatasetWriter(root, fingerprint_of(ingredients), endpoint)
    tables = {name: to_table(name, of) for name, of in rows.items()}
    return writer.commit(UNIT, tables, counts, WorkerStats(engine=detail))


def whole(dataset: Dataset) -> str:
    """What the one committed unit says, after a check that record and parts are of one attempt."""
    (record,) = dataset.commits()
    for part in record.parts:
        data = dataset.storage.read(join_uri(dataset.uri, part.path))
        assert sha256_hex(data) == part.sha256
    (row,) = dataset.table("rejects").to_pylist()
    assert row["detail"] == record.worker.engine
    return str(row["detail"])


@pytest.fixture(params=["local", "s3", "s3 without conditional writes"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, str | None, Faults | None]]:
    if request.param == "local":
        yield str(tmp_path / "dataset"), None, None
        return
    s3: S3Server = request.getfixturevalue("s3")
    s3.put("una-vez", {"x": b"1"})
    with s3_proxy(s3.port) as (endpoint, faults):
        faults.ignore_conditions = "without" in request.param
        yield f"s3://una-vez/{tmp_path.name}", endpoint, faults


Place = tuple[str, str | None, Faults | None]


def test_many_attempts_at_one_unit_leave_one_whole_unit(place: Place) -> None:
    root, endpoint, _ = place
    claim_dataset(root, INGREDIENTS, endpoint)
    with ThreadPoolExecutor(6) as pool:
        attempts = [pool.submit(commit, root, endpoint, f"intento {n}") for n in range(6)]
        said = {attempt.result().worker.engine for attempt in attempts}
    standing = whole(open_root(root, endpoint))
    assert standing in said
    if creates_once(open_root(root, endpoint).storage, root):
        assert said == {standing}
        assert sweep(open_root(root, endpoint)) == len(said | {standing}) + 4
        assert whole(open_root(root, endpoint)) == standing


def test_a_store_without_conditional_writes_is_noticed(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    root, endpoint, faults = place
    claim_dataset(root, INGREDIENTS, endpoint)
    ignored = faults is not None and faults.ignore_conditions
    assert ("ignores conditional writes" in caplog.text) is ignored
    assert creates_once(open_root(root, endpoint).storage, root) is not ignored


def test_a_job_that_takes_over_before_a_record_is_written_wins(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other job claims after our first look at the head, and before our record."""
    root, endpoint, _ = place
    claim_dataset(root, INGREDIENTS, endpoint)
    to_json = commit_module.commit_to_json

    def claimed_meanwhile(record: CommitRecord) -> bytes:
        claim_dataset(root, OTHER, endpoint)
        return to_json(record)

    monkeypatch.setattr(commit_module, "commit_to_json", claimed_meanwhile)
    with pytest.raises(DatasetError, match="taken this dataset over"):
        commit(root, endpoint, "tarde")
    monkeypatch.undo()
    assert open_root(root, endpoint).commits() == []
    commit(root, endpoint, "otro", OTHER)
    assert whole(open_root(root, endpoint)) == "otro"


def test_a_job_that_takes_over_while_a_record_is_written_gives_way(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other job finds no record, and one is there once it has put its head."""
    root, endpoint, _ = place
    claim_dataset(root, INGREDIENTS, endpoint)
    from pipeline import fingerprint

    take_over = fingerprint._take_over

    def committed_meanwhile(*arguments: object) -> None:
        commit(root, endpoint, "a tiempo")
        take_over(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fingerprint, "_take_over", committed_meanwhile)
    with pytest.raises(DatasetError, match=r'model\.checkpoint: "uno" in the dataset, "otro"'):
        claim_dataset(root, OTHER, endpoint)
    assert whole(open_root(root, endpoint)) == "a tiempo"


def test_other_schema_versions_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "dataset")
    monkeypatch.setattr("pipeline.fingerprint.SCHEMA_VERSION", "0.9.0")
    claim_dataset(root, INGREDIENTS, None)
    commit(root, None, "antes")
    monkeypatch.undo()
    with pytest.raises(DatasetError, match=r"schema_version: 0\.9\.0 in the dataset"):
        claim_dataset(root, INGREDIENTS, None)


def test_two_processes_on_one_dataset_share_its_units(tmp_path: Path) -> None:
    """Started by mistake, with the same settings: each unit is there once, both end well."""
    write_shard(tmp_path / "a.tar", shots(COUNT))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(tmp_path), "0.05"], cwd=ROOT, env=environment
        )
        for _ in range(2)
    ]
    assert [process.wait(DEADLINE) for process in started] == [0, 0]
    dataset = open_root(str(tmp_path / "dataset"))
    ids = dataset.table("annotations", ["sample_id"])["sample_id"].to_pylist()
    assert len(ids) == len(set(ids)) == 3 * COUNT
    named = {part.path for record in dataset.commits() for part in record.parts}
    sweep(dataset)
    for table in ("annotations", "screens", "rejects"):
        files = {f"{table}/{p.name}" for p in (tmp_path / "dataset" / table).iterdir()}
        assert files == {path for path in named if path.startswith(table)}


def test_a_second_job_with_other_settings_is_refused_while_the_first_is_at_work(
    tmp_path: Path,
) -> None:
    write_shard(tmp_path / "a.tar", shots(COUNT))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path), "0.05"], cwd=ROOT, env=environment
    )
    commits = tmp_path / "dataset" / "_commits"
    while first.poll() is None and not (commits.is_dir() and list(commits.glob("*.json"))):
        time.sleep(0.02)
    other = job(tmp_path, tmp_path / "a.tar", sampling=SamplingConfig(k=2))
    with pytest.raises(DatasetError, match=r"sampling\.k: 3 in the dataset, 2 in this job"):
        run_job(other, engine_factory=scripted(oracle(shots(COUNT))))
    assert first.wait(DEADLINE) == 0
    assert len(open_root(str(tmp_path / "dataset")).commits()) == COUNT // 2


def test_a_whole_run_on_a_store_without_conditional_writes(s3: S3Server, tmp_path: Path) -> None:
    known = shots(4)
    s3.put("una-vez", {"x": b"1"})
    shard = write_shard(tmp_path / "a.tar", known)
    with s3_proxy(s3.port) as (endpoint, faults):
        faults.ignore_conditions = True
        output = OutputConfig(dataset="s3://una-vez/entera", s3_endpoint=endpoint)
        config = job(tmp_path, shard, output=output)
        assert run_job(config, engine_factory=scripted(oracle(known))).exit_code == 0
        again = run_job(config, engine_factory=scripted(oracle(known)))
        assert (again.exit_code, again.report.figures.stats.units_done) == (0, 0)
        assert len(open_root(output.dataset, endpoint).table("annotations")) == 12
