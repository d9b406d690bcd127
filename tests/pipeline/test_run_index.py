"""The kept index through a job: written by a run alone, used by the next, hidden from readers."""

import io
import tarfile
from pathlib import Path

import duckdb
import pytest
from job_fixtures import Shot, job, oracle, png, scripted, shots, sidecar

from pipeline.clean import clean
from pipeline.config import JobConfig, SamplingConfig
from pipeline.dataset import open_dataset
from pipeline.estimate import estimate
from pipeline.plan import make_plan
from pipeline.run import run_job
from transforms.shards import INDEX

COUNT = 20


@pytest.fixture
def known() -> list[Shot]:
    return shots(COUNT)


@pytest.fixture
def config(tmp_path: Path, known: list[Shot]) -> JobConfig:
    """A job over a tar of 10 MiB: small pictures, each with half a megabyte behind its end."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number, shot in enumerate(known):
            files = {
                f"{shot.name}.png": png(shot) + bytes(2**19 + number),
                f"{shot.name}.json": sidecar(shot),
            }
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    path = tmp_path / "capturas" / "x.tar"
    path.parent.mkdir()
    path.write_bytes(buffer.getvalue())
    (path.parent / "shard.toml").write_text('licence = "MIT"\nsource = "Taller"\n')
    return job(tmp_path, path)


def test_a_plan_writes_nothing_and_a_run_keeps_what_the_next_one_uses(
    config: JobConfig, known: list[Shot]
) -> None:
    dataset = Path(config.output.dataset)
    assert estimate(config).screens == COUNT
    assert make_plan(config).new_indexes
    assert not dataset.exists()
    run_job(config, engine_factory=scripted(oracle(known)))
    assert [path.suffix for path in (dataset / INDEX).iterdir()] == [".members"]
    again = make_plan(config)
    assert (again.members, again.new_indexes) == (COUNT, ())
    assert estimate(config).units_done == len(again.units)
    outcome = run_job(config, engine_factory=scripted(oracle(known)))
    assert outcome.report.figures.counts.screens == COUNT


def test_readers_of_parquet_do_not_meet_the_index_and_rows_have_the_shards_defaults(
    config: JobConfig, known: list[Shot]
) -> None:
    run_job(config, engine_factory=scripted(oracle(known)))
    dataset = open_dataset(config.output.dataset)
    pattern = f"{config.output.dataset}/**/*.parquet"
    (count,) = duckdb.sql(
        f"select count(distinct screen_id) from read_parquet('{pattern}', union_by_name=true)"
    ).fetchall()[0]
    assert count == COUNT
    rows = dataset.table("screens").to_pylist()
    assert {row["source"] for row in rows} == {"Taller"}
    assert {row["licence"] for row in rows} == {"CC0-1.0"}, "the screen's own word wins"
    screen = next(dataset.screens())
    assert len(dataset.pixels_of(screen)) == screen.byte_size


def test_another_version_of_the_dataset_uses_the_same_index(
    config: JobConfig, known: list[Shot]
) -> None:
    run_job(config, engine_factory=scripted(oracle(known)))
    other = config.model_copy(update={"sampling": SamplingConfig(k=1)})
    assert make_plan(other).new_indexes == ()
    run_job(other, engine_factory=scripted(oracle(known)), new_version=True)
    assert len(list(Path(config.output.dataset).rglob("*.members"))) == 1


def test_cleaning_leaves_the_index(config: JobConfig, known: list[Shot]) -> None:
    run_job(config, engine_factory=scripted(oracle(known)))
    clean(open_dataset(config.output.dataset), lambda _: None)
    assert make_plan(config).new_indexes == ()
