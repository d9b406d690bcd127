"""The benchmark compares like with like: the same questions, the same answers, through both."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from job_fixtures import job
from typer.testing import CliRunner

from pipeline.bench import throughput
from pipeline.bench.systems import composed_requests, job_round
from pipeline.bench.throughput import UnequalWorkError, bench_throughput, table_lines
from pipeline.bench.workloads import WORKLOADS, Workload, suitable, workload_job
from pipeline.cli.app import app
from pipeline.config import JobConfig, ModelConfig
from schemas.errors import ConfigError
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency
from transforms.profiles.load import load_profile

NAMED = {workload.name: workload for workload in WORKLOADS}


def nothing(request: EngineRequest) -> Answer:
    return Answer(request.request_id, (Completion("[]", "stop", 1),) * request.n, 10)


def ready(tmp_path: Path, workload: Workload, model: ModelConfig | None = None) -> JobConfig:
    base = job(tmp_path, tmp_path / "none.tar", model=model or ModelConfig(profile="nano"))
    return workload_job(base, workload, 5, tmp_path)


@pytest.mark.parametrize(("name", "requests", "n"), [
    ("one", 5, 1), ("eight", 40, 1), ("votes", 5, 8), ("listing", 5, 1),
])  # fmt: skip
@pytest.mark.parametrize("profile", ["nano", "qwen3-vl"])
def test_a_workload_asks_what_it_says(
    tmp_path: Path, profile: str, name: str, requests: int, n: int
) -> None:
    model = ModelConfig(profile=profile)
    asked = composed_requests(ready(tmp_path, NAMED[name], model))
    assert len(asked) == len({one.request_id for one in asked}) == requests
    assert {one.n for one in asked} == {n}
    assert len({one.image_key for one in asked}) == 5


@pytest.mark.parametrize("name", list(NAMED))
def test_the_job_asks_what_raw_is_asked_and_writes_it(tmp_path: Path, name: str) -> None:
    config = ready(tmp_path, NAMED[name])
    engine = ScriptedEngine(nothing, ScriptedLatency(per_collect=8), 16)
    found = job_round(engine, config)
    asked = composed_requests(config)
    assert sorted(engine.submitted) == sorted(one.request_id for one in asked)
    assert found.samples == len(asked)
    assert found.prompt_tokens == 10 * len(asked)
    parts = Path(config.output.dataset, "annotations").glob("*.parquet")
    assert sum(len(set(pq.read_table(p)["sample_id"].to_pylist())) for p in parts) == len(asked)
    engine.collect()  # it is still open


def test_a_model_that_cannot_list_is_not_asked_to() -> None:
    names = [one.name for one in suitable(load_profile("holo2"), ())]
    assert names == ["one", "eight", "votes"]
    with pytest.raises(ConfigError, match="cannot list elements"):
        suitable(load_profile("holo2"), ("listing",))
    with pytest.raises(ConfigError, match="no such workload; choose of one, eight"):
        suitable(load_profile("nano"), ("many",))


@pytest.mark.vllm
def test_both_systems_run_on_the_real_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "bench.json"
    words = ["bench", "throughput", "--screens", "3", "--rounds", "1", "--out", str(out)]
    told = CliRunner().invoke(app, [*words, "--workload", "eight", "--workload", "listing"])
    assert told.exit_code == 0, told.output
    print(told.output)
    said = json.loads(out.read_text())
    for workload, requests in zip(said["workloads"], (24, 3), strict=True):
        (raw,), (ours,) = workload["raw"], workload["job"]
        assert raw["samples"] == ours["samples"] == requests
        assert raw["prompt_tokens"] == ours["prompt_tokens"]
        assert raw["output_tokens"] == ours["output_tokens"]  # greedy: the same answers
        assert workload["ratios"] == [raw["seconds"] / ours["seconds"]]
        assert raw["cached_tokens"] == 0 or ours["cached_tokens"] > 0

    monkeypatch.setattr(throughput, "composed_requests", lambda job: composed_requests(job)[:2])
    config = job(tmp_path, tmp_path / "none.tar", model=ModelConfig(profile="nano"))
    with pytest.raises(UnequalWorkError, match="answered 2 requests, the job 3"):
        bench_throughput(config, 3, 1, ("one",))


def test_the_table_shows_medians_and_the_spread() -> None:
    rounds = [throughput.Round(s, s, 10, 100, 50, 20) for s in (1.0, 2.0, 4.0)]
    slower = [throughput.Round(2 * one.seconds, 1.0, 10, 100, 0, 20) for one in rounds]
    found = throughput.Comparison(NAMED["one"], 10, tuple(rounds), tuple(slower))
    cells = list(table_lines([found]))[1].split()
    assert cells == ["one", "10", "10", "5.00", "2.50", "0.500", "0.50-0.50", "50%", "0%",
                     "2.0", "1.0"]  # fmt: skip
