"""Agents ask as they are said to, through the sweep and through the comparison with raw vLLM."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_fixtures import job
from typer.testing import CliRunner

from pipeline.bench import sweep as sweeps
from pipeline.bench import throughput
from pipeline.bench.agents import (
    PICTURES,
    STEPS,
    Agents,
    AgentSizes,
    agent_chains,
    agent_pictures,
    agent_requests,
    agent_steps,
    agents_in_turn,
)
from pipeline.bench.engine import engine_for, settings_for
from pipeline.bench.systems import fed_round
from pipeline.bench.workloads import AGENTS, WORKLOADS, suitable
from pipeline.cli.app import app
from pipeline.config import ModelConfig
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency
from transforms.engines.vllm import VllmEngine
from transforms.engines.vllm_gauges import QUIET_STATS
from transforms.engines.vllm_request import chat_messages
from transforms.profiles.load import load_profile

ONE = WORKLOADS[0]


def script(asked: EngineRequest) -> Answer:
    return Answer(asked.request_id, (Completion("sí", "stop", 20),), 80, 40)


def drawn_agents() -> Agents:
    profile = load_profile("nano")
    return Agents(profile, agent_pictures(profile), AgentSizes(4, 5, 300, 200, 4096))


def test_an_agents_history_grows_and_then_slides() -> None:
    steps = agent_steps(drawn_agents(), 3)
    assert len(steps) == STEPS
    turns = [chat_messages(step) for step in steps]
    for shorter, longer in ((0, 1), (1, 2)):
        assert turns[longer][: len(turns[shorter])] == turns[shorter]  # the prefix is shared
    assert turns[3][0] == turns[2][0]  # the system text
    assert turns[3][1] == turns[2][3]  # the oldest screen is gone
    shown = [sum(turn["role"] == "user" for turn in step) for step in turns]
    assert shown == [1, 2, 3, 3, 3]
    assert max(shown) == PICTURES
    assert [turn["role"] for turn in turns[2]] == ["system", *("user", "assistant") * 2, "user"]


def test_no_two_agents_share_a_screen_or_a_page() -> None:
    agents = drawn_agents()
    steps = [step for number in range(12) for step in agent_steps(agents, number)]
    assert len({step.image_key for step in steps}) == len(steps) == 12 * STEPS
    assert len({step.prompt for step in steps}) == len(steps)
    assert len({step.system for step in steps}) == 1


def test_agents_are_asked_as_they_work() -> None:
    order = list(agents_in_turn(150))
    assert len(set(order)) == 150 * STEPS
    assert order[:100] == [(number, 0) for number in range(100)]
    assert order[100:200] == [(number, 1) for number in range(100)]
    assert order[-1] == (149, STEPS - 1)
    agents = drawn_agents()
    chains = list(agent_chains(agents, range(7), staggered=6, threads=2))
    assert [len(chain) for chain in chains] == [5, 4, 3, 2, 1, 5, 5]
    made = [one.request_id for one in agent_requests(agents, 2, threads=2)]
    assert made == [f"agent-{number:05d}-{step}" for step in range(STEPS) for number in (0, 1)]
    engine = ScriptedEngine(script, ScriptedLatency(per_collect=3), max_in_flight=4)
    found = fed_round(engine, agent_requests(agents, 2, threads=2))
    assert engine.submitted == made
    assert (found.samples, found.prompt_tokens, found.output_tokens) == (10, 800, 200)


def test_agents_come_only_by_name_and_raise_the_limit_of_images(tmp_path: Path) -> None:
    profile = load_profile("nano")
    assert AGENTS not in suitable(profile, ())
    assert suitable(profile, ("agents",)) == (AGENTS,)
    config = job(tmp_path, tmp_path / "none.tar", model=ModelConfig(profile="nano"))
    assert settings_for(config, (ONE,)).engine["limit_mm_per_prompt"] == {"image": 1, "video": 0}
    raised = settings_for(config, (ONE, AGENTS)).engine["limit_mm_per_prompt"]
    assert raised == {"image": PICTURES, "video": 0}
    model = ModelConfig(profile="nano", engine={"limit_mm_per_prompt": {"image": 8}})
    more = job(tmp_path, tmp_path / "none.tar", model=model)
    assert settings_for(more, (AGENTS,)).engine["limit_mm_per_prompt"] == {"image": 8}


@pytest.fixture(scope="module")
def agent_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmEngine]:
    folder = tmp_path_factory.mktemp("agents")
    config = job(folder, folder / "none.tar", model=ModelConfig(profile="nano"))
    engine = engine_for(config, (AGENTS,), QUIET_STATS)
    yield engine
    VllmEngine.close(engine)


@pytest.mark.vllm
def test_agents_run_on_the_real_engine(
    agent_engine: VllmEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_engine, "close", lambda: None)
    monkeypatch.setattr(sweeps, "engine_for", lambda *_: agent_engine)
    monkeypatch.setattr(throughput, "engine_for", lambda *_: agent_engine)
    out = tmp_path / "sweep.json"
    words = ["bench", "sweep", "--workload", "agents", "--in-flight", "1,3", "--requests", "3"]
    told = CliRunner().invoke(app, [*words, "--price-per-hour", "3.6", "--out", str(out)])
    assert told.exit_code == 0, told.output
    print(told.output)
    said = json.loads(out.read_text())
    assert said["engine"]["limit_mm_per_prompt"]["image"] == PICTURES
    assert [found["in_flight"] for found in said["levels"]] == [1, 3]
    for found in said["levels"]:
        assert found["requests"] >= 3
        assert found["prompt_tokens"] > 1000 * found["requests"]
        assert 0 < found["first_token"][0] <= found["latency"][0]
        assert found["cached"] > 0  # a step finds what the one before has computed
        assert 1 <= found["seen"]["running"] <= found["in_flight"]
        assert found["seen"]["device_bytes"] is None
        spent = found["cost_per_thousand"] * found["requests"] / 1000
        assert spent == pytest.approx(3.6 * found["seconds"] / 3600)

    out = tmp_path / "throughput.json"
    words = ["bench", "throughput", "--workload", "agents", "--screens", "5", "--rounds", "1"]
    told = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert told.exit_code == 0, told.output
    print(told.output)
    (workload,) = json.loads(out.read_text())["workloads"]
    (raw,), (ours,) = workload["raw"], workload["job"]
    assert raw["samples"] == ours["samples"] == 5
    assert raw["prompt_tokens"] == ours["prompt_tokens"]
