"""Where inputs and datasets lie: what is refused before anything is made."""

import os
from pathlib import Path

import pytest
from job_fixtures import job, oracle, png, scripted, shots, write_shard

from pipeline.config import InputConfig, JobConfig, ModelConfig, OutputConfig, load_config
from pipeline.dataset import open_dataset
from pipeline.run import run_job
from schemas.errors import ConfigError, DatasetError, InputError


def with_dataset(config: JobConfig, dataset: str) -> JobConfig:
    return config.model_copy(update={"output": OutputConfig(dataset=dataset)})


@pytest.mark.parametrize("dataset", ["capturas/salida", "capturas", "capturas/"])
def test_a_dataset_in_its_own_input_folder_is_refused(tmp_path: Path, dataset: str) -> None:
    folder = tmp_path / "capturas"
    folder.mkdir()
    (folder / "a.png").write_bytes(png(shots(1)[0]))
    config = with_dataset(job(tmp_path, folder), f"{tmp_path}/{dataset}")
    with pytest.raises(ConfigError, match="lies in the input folder"):
        run_job(config, engine_factory=scripted(oracle([])))
    assert [path.name for path in folder.iterdir()] == ["a.png"]


@pytest.mark.parametrize("pattern", ["", "/", "/**/*"])
def test_a_dataset_beside_shards_is_never_read_as_input(tmp_path: Path, pattern: str) -> None:
    known = shots(2)
    (tmp_path / "datos" / "tars").mkdir(parents=True)
    write_shard(tmp_path / "datos" / "tars" / "a.tar", known)
    shards = InputConfig(shards=(f"{tmp_path}/datos{pattern}",))
    config = JobConfig(
        input=shards,
        output=OutputConfig(dataset=f"{tmp_path}/datos/salida"),
        model=ModelConfig(probe="off"),
    )
    first = run_job(config, engine_factory=scripted(oracle(known)))
    again = run_job(config, engine_factory=scripted(oracle(known)))
    assert (first.report.figures.counts.members, first.report.figures.stats.units_done) == (2, 1)
    assert (again.report.figures.counts.members, again.report.figures.stats.units_done) == (2, 0)


def test_a_dataset_that_cannot_be_written_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "archivo").write_text("x")
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(1)))
    with pytest.raises(DatasetError, match=r"output\.dataset = .*archivo cannot be used"):
        run_job(with_dataset(config, f"{tmp_path}/archivo"), engine_factory=scripted(oracle([])))


def test_a_dataset_may_be_a_file_url(tmp_path: Path) -> None:
    known = shots(1)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    config = with_dataset(config, f"file://{tmp_path}/salida")
    run_job(config, engine_factory=scripted(oracle(known)))
    assert len(open_dataset(str(tmp_path / "salida")).commits()) == 1


@pytest.mark.parametrize("setting", ["output.dataset", "input.queries", "input.shards"])
def test_an_empty_path_is_refused(tmp_path: Path, setting: str) -> None:
    value = '[""]' if setting == "input.shards" else ""
    given = {"input.shards": "a.tar", "output.dataset": "b", setting: value}
    with pytest.raises(ConfigError, match=setting.replace(".", r"\.")):
        load_config(None, tuple(f"{key}={text}" for key, text in given.items()))


def test_a_queries_file_that_is_not_there_is_a_wrong_setting(tmp_path: Path) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(1)))
    missing = config.input.model_copy(update={"queries": str(tmp_path / "no.jsonl")})
    with pytest.raises(ConfigError, match=r"input\.queries: .*no\.jsonl"):
        run_job(config.model_copy(update={"input": missing}))


def test_a_shard_whose_name_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "a.tar", shots(1))
    shard.rename(os.fsdecode(os.fsencode(tmp_path) + b"/a\xf1o.tar"))
    with pytest.raises(InputError, match="not UTF-8"):
        run_job(job(tmp_path, tmp_path / "*.tar"))


def test_a_file_whose_name_is_not_utf8_costs_only_itself(tmp_path: Path) -> None:
    folder = tmp_path / "capturas"
    folder.mkdir()
    for name in (b"a.png", b"a\xf1o.png"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(png(shots(1)[0]))
    counts = run_job(
        job(tmp_path, folder), engine_factory=scripted(oracle([]))
    ).report.figures.counts
    assert (counts.members, counts.screens) == (2, 1)


def test_links_that_lead_nowhere_are_rejects_of_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "capturas"
    (folder / "dentro").mkdir(parents=True)
    (folder / "a.png").write_bytes(png(shots(1)[0]))
    (folder / "b.png").symlink_to("a.png")
    (folder / "yo.png").symlink_to("yo.png")
    (folder / "dentro" / "perdida.png").symlink_to("/no/existe.png")
    (folder / ".oculta.png").symlink_to("/no/existe.png")
    (folder / "aqui").symlink_to(".")
    config = job(tmp_path, folder)
    counts = run_job(config, engine_factory=scripted(oracle([]))).report.figures.counts
    assert (counts.members, counts.screens, counts.members_rejected) == (4, 2, 2)
    rejects = open_dataset(config.output.dataset).table("rejects").to_pylist()
    found = {row["member"]: row["reason"] for row in rejects if row["stage"] == "plan"}
    assert found == {"yo.png": "member_unreadable", "dentro/perdida.png": "member_unreadable"}


def test_a_dead_link_among_shards_stops_the_job_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "tars").mkdir()
    write_shard(tmp_path / "tars" / "a.tar", shots(1))
    (tmp_path / "tars" / "b.tar").symlink_to("/disco/que/no/esta/b.tar")
    with pytest.raises(InputError, match=r"b\.tar: a link to a file that is not there"):
        run_job(job(tmp_path, tmp_path / "tars"))


def test_a_home_of_nobody_is_a_path_like_any_other(tmp_path: Path) -> None:
    config = load_config(None, ("input.shards=~nadie-aqui/a.tar", f"output.dataset={tmp_path}/d"))
    with pytest.raises(InputError, match="~nadie-aqui"):
        run_job(config)
