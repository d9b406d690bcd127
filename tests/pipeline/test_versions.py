"""`--new-version`: other settings get a place of their own, and nothing old is read."""

from pathlib import Path

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard

from pipeline.config import JobConfig, OutputConfig, SamplingConfig
from pipeline.dataset import open_dataset
from pipeline.run import run_job
from pipeline.versions import newest_root
from schemas.errors import DatasetError

KNOWN = shots(3)


def run(config: JobConfig, k: int, *, new_version: bool = False) -> str:
    changed = config.model_copy(update={"sampling": SamplingConfig(k=k)})
    outcome = run_job(changed, engine_factory=scripted(oracle(KNOWN)), new_version=new_version)
    assert outcome.exit_code == 0
    return outcome.dataset


def ks(dataset: str) -> set[int]:
    rows = open_dataset(dataset).table("annotations", ["sampling"]).to_pylist()
    return {row["sampling"]["k"] for row in rows}


@pytest.fixture
def config(tmp_path: Path) -> JobConfig:
    return job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))


def test_each_setting_has_its_version_and_readers_get_the_newest(config: JobConfig) -> None:
    name = config.output.dataset
    assert run(config, 2, new_version=True) == name
    before = {p: p.stat().st_mtime_ns for p in Path(name).rglob("*.parquet")}
    with pytest.raises(DatasetError, match="--new-version"):
        run(config, 3)
    assert run(config, 3, new_version=True) == f"{name}@v2"
    assert run(config, 4, new_version=True) == f"{name}@v3"
    assert (ks(name), ks(f"{name}@v1"), ks(f"{name}@v2")) == ({4}, {2}, {3})
    assert before == {p: p.stat().st_mtime_ns for p in Path(name).rglob("*.parquet")}


def test_a_run_goes_on_with_the_version_of_its_settings(config: JobConfig) -> None:
    name = config.output.dataset
    for k in (2, 3):
        run(config, k, new_version=True)
    assert run(config, 2) == name
    assert run(config, 3) == run(config, 3, new_version=True) == f"{name}@v2"


def test_a_version_that_is_named_is_the_one_written(config: JobConfig) -> None:
    name = config.output.dataset
    run(config, 2)
    named = config.model_copy(update={"output": OutputConfig(dataset=f"{name}@v2")})
    assert run(named, 3) == f"{name}@v2"
    with pytest.raises(DatasetError, match=r"sampling\.k: 3 in the dataset, 2 in this job"):
        run(named, 2)
    assert run(named, 4, new_version=True) == f"{name}@v3"


def test_a_removed_version_in_the_middle_hides_no_newer_one(config: JobConfig) -> None:
    name = config.output.dataset
    for k in (2, 3, 4):
        run(config, k, new_version=True)
    Path(f"{name}@v2").rename(f"{name}-away")
    assert newest_root(name, None) == f"{name}@v3"
    assert newest_root(name + "/", None) == f"{name}@v3"


def test_a_dataset_without_a_unit_needs_no_new_version(config: JobConfig) -> None:
    from pipeline.fingerprint import claim_dataset

    claim_dataset(config.output.dataset, {"x": 1}, None)
    assert run(config, 2, new_version=True) == config.output.dataset
