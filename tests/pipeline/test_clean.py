"""What killed runs leave is not read, and is removed; what a record names never is."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard
from s3_server import S3Server

from pipeline.at_work import Worker, at_work, workers
from pipeline.clean import clean, leftovers
from pipeline.cli.app import main
from pipeline.dataset import Dataset, open_dataset
from pipeline.run import run_job
from schemas.errors import DatasetError, StorageError
from transforms import commit as commit_module
from transforms.storage import storage_for

KNOWN = shots(4)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    return open_dataset(config.output.dataset)


def files(dataset: Dataset) -> set[str]:
    return {str(p) for p in Path(dataset.uri).rglob("*") if p.is_file()}


def leave(dataset: Dataset) -> set[str]:
    """What a run killed at several instants leaves: a part, a half-written file, its mark."""
    root = Path(dataset.uri)
    part = next((root / "annotations").glob("*.parquet"))
    left = [
        root / "annotations" / "ffff-0000-1111.parquet",
        root / "screens" / ".tmp-99-abc",
        root / "_run" / "jobs" / "muerto.json",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(part.read_bytes())
    return set(map(str, left))


def test_only_leftovers_are_removed(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    before, left = files(dataset), leave(dataset)
    with pytest.raises(SystemExit) as ended:
        main(["clean", dataset.uri, "--dry-run"])
    assert (ended.value.code, files(dataset)) == (0, before | left)
    assert "3 files of" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["clean", dataset.uri])
    assert "removed" in capsys.readouterr().out
    assert files(dataset) == before
    assert list(leftovers(open_dataset(dataset.uri))) == []


def test_nothing_is_removed_while_a_job_is_at_work(dataset: Dataset) -> None:
    before = files(dataset) | leave(dataset)
    with (
        at_work(dataset, "job"),
        pytest.raises(DatasetError, match=f"job of process {os.getpid()}"),
    ):
        clean(dataset, lambda _: None)
    assert files(dataset) == before


def test_a_job_waits_for_a_cleaner_and_not_for_another_job(dataset: Dataset) -> None:
    with at_work(dataset, "job"), at_work(dataset, "job"):
        assert len(workers(dataset)) == 2
    with (
        at_work(dataset, "clean"),
        pytest.raises(DatasetError, match="clean of process"),
        at_work(dataset, "job"),
    ):
        pass
    assert workers(dataset) == {}


def test_a_job_that_does_the_same_as_another_says_so(
    dataset: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    with at_work(dataset, "job"), at_work(dataset, "job", "1/2"), at_work(dataset, "job", "2/2"):
        assert not caplog.records  # one that shares the work with its workers
        with at_work(dataset, "job", "2/2"):
            (record,) = caplog.records
    assert f"job of process {os.getpid()}" in record.getMessage()
    assert "computed twice" in record.getMessage()


def test_a_dead_process_stands_in_nobody_s_way(dataset: Dataset) -> None:
    here = Worker("job", os.uname().nodename, os.getpid(), 0.0, time.time())
    assert not here.alive  # the pid is that of another process now
    away = replace(here, host="otra-maquina")
    assert away.alive
    assert not replace(away, renewed=time.time() - 3600).alive
    target = Path(dataset.uri) / "_run" / "jobs" / "x.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    fields = ("kind", "host", "pid", "started", "renewed")
    target.write_text(json.dumps({name: getattr(here, name) for name in fields}))
    clean(dataset, lambda _: None)
    assert not target.exists()


def test_parts_of_a_killed_attempt_are_swept_when_the_next_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the model answers otherwise the second time, so that the names differ."""
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))

    def killed(*_: object) -> None:
        raise StorageError("killed before the record")

    monkeypatch.setattr(commit_module.DatasetWriter, "_stand", killed)
    with pytest.raises(StorageError):
        run_job(config, engine_factory=scripted(oracle(KNOWN, frozenset(KNOWN[0].targets))))
    monkeypatch.undo()
    parts = tmp_path / "dataset" / "annotations"
    assert list(parts.iterdir())  # of one unit, or of both: the second may be written by then
    assert open_dataset(config.output.dataset).table("annotations").num_rows == 0
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    dataset = open_dataset(config.output.dataset)
    assert len(list(parts.iterdir())) == len(dataset.commits()) == 2


def test_uploads_that_were_never_finished_are_aborted(s3: S3Server) -> None:
    s3.put("limpieza", {"x": b"1"})
    client = s3.client()
    for key in ("datos/annotations/a", "otros/b"):
        client.create_multipart_upload(Bucket="limpieza", Key=key)
    storage = storage_for("s3://limpieza/datos", s3.endpoint)
    (found,) = storage.unfinished("s3://limpieza/datos")
    assert found.uri == "s3://limpieza/datos/annotations/a"
    storage.discard(found)
    assert storage.unfinished("s3://limpieza/datos") == []
    assert len(storage.unfinished("s3://limpieza/otros")) == 1
