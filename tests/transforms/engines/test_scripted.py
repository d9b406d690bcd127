"""The scripted engine keeps the engine's promises, so that tests with it mean something."""

import functools
import operator

import pytest
from PIL import Image

from schemas.errors import EngineError
from schemas.profile import Sampling
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency


def request(name: str) -> EngineRequest:
    return EngineRequest(
        name, Image.new("RGB", (8, 8)), "key", f"¿{name}?", None, 1, Sampling(), 8, 0, None, "{}"
    )


def echo(asked: EngineRequest) -> Answer:
    return Answer(asked.request_id, (Completion(asked.prompt, "stop", 3),), 10)


def run(latency: ScriptedLatency, names: str = "abcdefgh") -> list[list[str]]:
    engine = ScriptedEngine(echo, latency)
    for name in names:
        engine.submit(request(name))
    rounds = []
    while sum(map(len, rounds)) < len(names):
        rounds.append([answer.request_id for answer in engine.collect()])
    return rounds


def test_each_request_is_answered_once() -> None:
    rounds = run(ScriptedLatency())
    assert sorted(functools.reduce(operator.iadd, rounds, [])) == list("abcdefgh")


def test_order_is_shuffled_and_repeatable() -> None:
    assert run(ScriptedLatency(shuffle_seed=1)) == run(ScriptedLatency(shuffle_seed=1))
    assert functools.reduce(operator.iadd, run(ScriptedLatency(shuffle_seed=1)), []) != list(
        "abcdefgh"
    )


def test_in_order_on_demand() -> None:
    assert run(ScriptedLatency(shuffle_seed=None, per_collect=3)) == [
        ["a", "b", "c"],
        ["d", "e", "f"],
        ["g", "h"],
    ]


def test_answers_can_be_held_back() -> None:
    assert run(ScriptedLatency(hold=2, per_collect=8, shuffle_seed=None)) == [
        [],
        [],
        list("abcdefgh"),
    ]


def test_it_dies_on_demand_and_stays_dead() -> None:
    engine = ScriptedEngine(echo, ScriptedLatency(per_collect=1, fail_after=1))
    engine.submit(request("a"))
    assert len(engine.collect()) == 1
    with pytest.raises(EngineError, match="died after 1 answers"):
        engine.collect()
    with pytest.raises(EngineError):
        engine.submit(request("b"))


def test_misuse_is_refused() -> None:
    engine = ScriptedEngine(echo)
    engine.submit(request("a"))
    with pytest.raises(EngineError, match="in flight already"):
        engine.submit(request("a"))
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.collect()
