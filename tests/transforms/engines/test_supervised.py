"""An engine that dies, hangs or chokes costs the one request that did it, and no other."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from schemas.caches import CacheCounts
from schemas.codes import RejectReason
from schemas.errors import EngineError
from schemas.profile import Sampling
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.limits import EngineLimits
from transforms.engines.scripted import Mishap, ScriptedEngine, ScriptedLatency
from transforms.engines.supervised import SupervisedEngine
from transforms.engines.trouble import ForgetfulTrouble, TroubleFiles
from transforms.engines.witness import WITNESS

TWO_AT_ONCE = ScriptedLatency(per_collect=2)
QUICK = EngineLimits(request_timeout_seconds=5.0, hang_seconds=0.1, max_rebuilds=10)


def request(name: str) -> EngineRequest:
    image = Image.new("RGB", (8, 8))
    return EngineRequest(name, image, name, f"¿{name}?", None, 1, Sampling(), 8, 7, None, "{}")


def echo(asked: EngineRequest) -> Answer:
    return Answer(asked.request_id, (Completion(f"{asked.prompt} {asked.seed}", "stop", 3),), 10)


@dataclass
class Plant:
    """Builds scripted engines in which some requests do harm, and keeps them for a look."""

    mishaps: dict[str, Mishap] = field(default_factory=dict)
    latency: ScriptedLatency = TWO_AT_ONCE
    room: int = 8
    built: list[ScriptedEngine] = field(default_factory=list)

    def __call__(self) -> ScriptedEngine:
        mishap = lambda asked: self.mishaps.get(asked.request_id)  # noqa: E731
        self.built.append(ScriptedEngine(echo, self.latency, self.room, mishap=mishap))
        return self.built[-1]


def run(engine: SupervisedEngine, names: list[str]) -> dict[str, Answer]:
    """Ask everything as the job does: never more than there is room for."""
    answers: dict[str, Answer] = {}
    waiting, inside = list(names), 0
    while waiting or inside:
        while waiting and inside < engine.info.max_in_flight:
            engine.submit(request(waiting.pop(0)))
            inside += 1
        for answer in engine.collect():
            assert answer.request_id not in answers
            answers[answer.request_id] = answer
            inside -= 1
    return answers


def names(number: int) -> list[str]:
    return [f"r{i:03d}" for i in range(number)]


@pytest.mark.parametrize("mishap", [Mishap.DIES, Mishap.HANGS])
def test_b080_the_culprit_alone_is_rejected(mishap: Mishap) -> None:
    plant = Plant({"r013": mishap})
    answers = run(SupervisedEngine(plant, QUICK, ForgetfulTrouble()), names(30))
    assert sorted(answers) == names(30)
    culprit = answers.pop("r013")
    assert culprit.error_reason is RejectReason.ENGINE_KILLER
    assert "not even alone" in culprit.error_detail
    assert all(
        answer.completions == echo(request(key)).completions for key, answer in answers.items()
    )
    assert len(plant.built) <= 1 + 4  # eight in flight: 8, 4, 2, 1


@given(st.sets(st.integers(0, 39), max_size=6), st.integers(1, 16))
def test_any_number_of_culprits_is_found_and_no_innocent(bad: set[int], room: int) -> None:
    culprits = {f"r{i:03d}" for i in bad}
    plant = Plant(dict.fromkeys(culprits, Mishap.DIES), room=room)
    answers = run(SupervisedEngine(plant, QUICK, ForgetfulTrouble()), names(40))
    assert {key for key, answer in answers.items() if answer.error_reason} == culprits
    assert len(answers) == 40


def test_a_request_that_never_ends_is_given_up_and_the_engine_lives() -> None:
    plant = Plant({"r003": Mishap.STUCK})
    limits = EngineLimits(request_timeout_seconds=0.2, hang_seconds=30.0)
    answers = run(SupervisedEngine(plant, limits, ForgetfulTrouble()), names(12))
    assert answers.pop("r003").error_reason is RejectReason.REQUEST_TIMEOUT
    assert len(plant.built) == 1
    assert all(answer.completions for answer in answers.values())


def test_b076_an_engine_that_dies_of_many_at_once_gets_fewer() -> None:
    plant = Plant(latency=ScriptedLatency(per_collect=64, fail_from=32), room=64)
    engine = SupervisedEngine(plant, QUICK, ForgetfulTrouble())
    answers = run(engine, names(400))
    assert all(answer.completions for answer in answers.values())
    assert engine.info.max_in_flight < 32
    assert len(plant.built) < 8


def test_one_accident_costs_no_room() -> None:
    plant = Plant(latency=ScriptedLatency(fail_after=20))
    engine = SupervisedEngine(plant, QUICK, ForgetfulTrouble())
    assert all(answer.completions for answer in run(engine, names(30)).values())
    assert (len(plant.built), engine.info.max_in_flight) == (2, 8)


def test_a_broken_machine_rejects_nobody_and_ends_after_its_rebuilds() -> None:
    plant = Plant({WITNESS: Mishap.DIES, **dict.fromkeys(names(20), Mishap.DIES)})
    limits = EngineLimits(hang_seconds=0.1, max_rebuilds=3)
    with pytest.raises(EngineError, match=r"rebuilt 3 times .*run it again"):
        run(SupervisedEngine(plant, limits, ForgetfulTrouble()), names(20))
    assert len(plant.built) == 4


def test_an_answer_after_a_rebuild_is_the_same() -> None:
    alone = run(SupervisedEngine(Plant(), QUICK, ForgetfulTrouble()), names(20))
    troubled = Plant({"bad": Mishap.DIES}, room=4)
    after = run(SupervisedEngine(troubled, QUICK, ForgetfulTrouble()), ["bad", *names(20)])
    del after["bad"]
    assert after == alone


def test_a_culprit_never_reaches_the_engine_of_a_later_run(tmp_path: Path) -> None:
    plant = Plant({"r002": Mishap.DIES})
    first = run(SupervisedEngine(plant, QUICK, TroubleFiles(str(tmp_path))), names(8))
    later = Plant({"r002": Mishap.DIES})
    second = run(SupervisedEngine(later, QUICK, TroubleFiles(str(tmp_path))), names(8))
    assert second == first
    assert len(later.built) == 1
    assert "r002" not in later.built[0].submitted
    assert not list((tmp_path / "_run" / "suspects").iterdir())


def halving_runs(folder: Path, mishaps: dict[str, Mishap]) -> Iterator[int]:
    """Runs that bear no rebuild at all, each after the other, until one comes through."""
    for number in count(1):
        engine = SupervisedEngine(
            Plant(mishaps),
            EngineLimits(hang_seconds=0.1, max_rebuilds=1),
            TroubleFiles(str(folder)),
        )
        try:
            answers = run(engine, names(20))
        except EngineError:
            yield number
            continue
        assert {key for key, answer in answers.items() if answer.error_reason} == set(mishaps)
        return


def test_runs_that_end_in_the_middle_go_on_where_they_were(tmp_path: Path) -> None:
    assert len(list(halving_runs(tmp_path, {"r009": Mishap.DIES}))) <= 3
    assert [path.stem for path in (tmp_path / "_run" / "culprits").iterdir()] == ["r009"]


def test_what_was_in_a_stuck_engine_is_remembered_and_convicted_when_alone(tmp_path: Path) -> None:
    """A `collect` that never returns can only be seen from another thread."""
    import threading

    for expected in (4, 2, 1, 0):
        engine = SupervisedEngine(
            Plant({"r001": Mishap.BLOCKS}, room=4), QUICK, TroubleFiles(str(tmp_path))
        )
        thread = threading.Thread(target=run, args=(engine, names(4)), daemon=True)
        thread.start()
        until = time.monotonic() + 10
        while engine.overdue() is None and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        if expected == 0:
            thread.join(10)
            assert not thread.is_alive()
            break
        assert "stuck" in (engine.overdue() or "")
        assert engine.in_flight == expected
        assert engine.oldest() is not None
        engine.remember()
    assert [path.stem for path in (tmp_path / "_run" / "culprits").iterdir()] == ["r001"]


def test_a_slow_engine_is_not_a_dead_one() -> None:
    plant = Plant(latency=ScriptedLatency(hold=40, per_collect=8, sleep=0.01))
    engine = SupervisedEngine(plant, QUICK, ForgetfulTrouble())
    run(engine, names(16))
    assert len(plant.built) == 1


def test_b079_an_engine_that_loses_memory_is_started_anew_between_answers() -> None:
    plant = Plant()
    limits = EngineLimits(recycle_answers=10)
    answers = run(SupervisedEngine(plant, limits, ForgetfulTrouble()), names(50))
    assert len(answers) == 50
    assert 4 <= len(plant.built) <= 5
    assert max(len(engine.submitted) for engine in plant.built) <= 10 + plant.room


class Counting(ScriptedEngine):
    """Counts as an engine does that started a moment ago."""

    @property
    def caches(self) -> CacheCounts:
        asked = len(self.submitted)
        return CacheCounts(asked, 0, asked, None)


def test_what_the_caches_did_is_counted_over_every_engine() -> None:
    built: list[Counting] = []

    def start() -> Counting:
        built.append(Counting(echo, TWO_AT_ONCE, 8))
        return built[-1]

    limits = EngineLimits(recycle_answers=5)
    engine = SupervisedEngine(start, limits, ForgetfulTrouble())
    run(engine, names(24))
    asked = sum(len(one.submitted) for one in built)
    assert len(built) > 1
    assert engine.caches == CacheCounts(asked, 0, asked, None)


def test_a_first_start_that_fails_is_not_tried_again() -> None:
    calls: list[int] = []

    def refuse() -> ScriptedEngine:
        calls.append(1)
        raise EngineError("not enough memory")

    with pytest.raises(EngineError, match="not enough memory"):
        SupervisedEngine(refuse, QUICK, ForgetfulTrouble())
    assert calls == [1]


def flaky(times: int) -> Callable[[], ScriptedEngine]:
    """The first engine dies of `bad`; the next `times` do not even start."""
    number = count()

    def build() -> ScriptedEngine:
        turn = next(number)
        if 0 < turn <= times:
            raise EngineError("the device is busy")
        return Plant({"bad": Mishap.DIES})()

    return build


def test_a_rebuild_that_fails_is_tried_again() -> None:
    engine = SupervisedEngine(flaky(3), QUICK, ForgetfulTrouble())
    answers = run(engine, ["a", "bad", "b"])
    assert answers["a"].completions
    assert answers["b"].completions
    assert answers["bad"].error_reason is RejectReason.ENGINE_KILLER
