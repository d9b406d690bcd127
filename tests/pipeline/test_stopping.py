"""Signals at every step of a job, an engine that does not come back, and the heartbeat."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard

from pipeline import attend, run
from pipeline.config import EngineConfig, JobConfig, LabelStudioConfig, LimitsConfig, RunConfig
from pipeline.dataset import Dataset, open_dataset
from pipeline.observer import Observer
from pipeline.plan import Plan
from pipeline.progress import Progress
from pipeline.report.stats import PushOutcome
from pipeline.run import run_job
from schemas.commits import CommitRecord
from schemas.errors import EngineError, StoppedError
from transforms.engines import holder
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import Mishap, ScriptedEngine, ScriptedLatency

KNOWN = shots(6)
SLOW = ScriptedLatency(hold=1, per_collect=1, sleep=0.05)
ONE_BY_ONE = partial(ScriptedEngine, latency=ScriptedLatency(hold=1, sleep=0.2), max_in_flight=1)
"""A request takes 0.4 s and a unit of six 2.4 s: longer than a test needs after the first commit.

The engine has a thread of its own, and goes on while a test's observer acts.
"""


@pytest.fixture(autouse=True)
def _nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that a test leaves in its engine must not haunt the next test."""
    monkeypatch.setattr(attend, "_left_behind", [])
    monkeypatch.setattr(attend, "LAST_WAIT", 0.5)
    monkeypatch.setattr(holder, "_held", [])
    monkeypatch.setattr(holder, "_starting", [])
    monkeypatch.setattr(holder, "_lock", threading.Lock())


class Calls(Observer):
    """Calls `action` when the first unit is committed."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self.ticks: list[str] = []

    def advance(self, record: CommitRecord) -> None:
        action, self.action = self.action, None
        if action is not None:
            action()

    def tick(self, text: str) -> None:
        self.ticks.append(text)


def send(number: int, times: int = 1, pause: float = 0.3) -> None:
    for _ in range(times):
        os.kill(os.getpid(), number)
        time.sleep(pause)


def later(action: Callable[[], None], seconds: float = 0.3) -> None:
    threading.Timer(seconds, action).start()


def slow(tmp_path: Path, grace: float, **changes: object) -> JobConfig:
    shard = write_shard(tmp_path / "a.tar", KNOWN)
    limits = LimitsConfig(max_reject_share=0.5)
    return job(tmp_path, shard, run=RunConfig(grace_seconds=grace), limits=limits, **changes)


def units(config: JobConfig) -> int:
    return len(open_dataset(config.output.dataset).commits())


def heartbeat(config: JobConfig) -> dict[str, object]:
    return json.loads((Path(config.output.dataset) / "_run" / "heartbeat.json").read_text())


def test_within_the_time_of_grace_units_in_work_are_finished(tmp_path: Path) -> None:
    config = slow(tmp_path, grace=60)
    watch = Calls(lambda: send(signal.SIGTERM))
    factory = partial(ScriptedEngine, oracle(KNOWN), SLOW, 6)
    outcome = run_job(config, observer=watch, engine_factory=factory)
    assert outcome.exit_code == 143
    assert 2 <= units(config) <= 3
    assert (heartbeat(config)["phase"], heartbeat(config)["exit_code"]) == ("ended", 143)


@pytest.mark.parametrize(("grace", "times"), [(0.0, 1), (60.0, 2)])
def test_after_it_or_at_the_second_signal_they_are_given_up(
    tmp_path: Path, grace: float, times: int
) -> None:
    config = slow(tmp_path, grace)
    factory = partial(ONE_BY_ONE, oracle(KNOWN))
    watch = Calls(lambda: send(signal.SIGINT, times))
    started = time.monotonic()
    outcome = run_job(config, observer=watch, engine_factory=factory)
    assert outcome.exit_code == 130
    assert units(config) == 1
    assert time.monotonic() - started < 60
    assert run_job(config, engine_factory=scripted(oracle(KNOWN))).exit_code == 0
    assert units(config) == 3


def test_an_engine_that_does_not_come_back_is_left_behind(tmp_path: Path) -> None:
    config = slow(tmp_path, grace=0.2)
    factory = partial(ScriptedEngine, oracle(KNOWN), mishap=Blocks("pantalla 5"))
    later(lambda: send(signal.SIGTERM), 4)
    outcome = run_job(config, engine_factory=factory)
    assert outcome.exit_code == 143
    assert attend._left_behind


def test_a_signal_while_listing_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forever(_: JobConfig) -> Plan:
        later(lambda: send(signal.SIGTERM))
        time.sleep(60)
        raise AssertionError

    monkeypatch.setattr(run, "make_plan", forever)
    with pytest.raises(StoppedError, match="SIGTERM while listing") as caught:
        run_job(slow(tmp_path, grace=60))
    assert caught.value.signal == signal.SIGTERM
    assert not Path(tmp_path / "dataset").exists()


def test_a_signal_while_pushing_leaves_the_rest_pending_and_reports(tmp_path: Path) -> None:
    def forever(_: Dataset, __: JobConfig) -> PushOutcome:
        assert heartbeat(config)["phase"] in ("annotate", "push")
        later(lambda: send(signal.SIGTERM))
        time.sleep(60)
        raise AssertionError

    studio = LabelStudioConfig(url="http://127.0.0.1:9")
    config = slow(tmp_path, grace=60, label_studio=studio)
    outcome = run_job(config, push=forever, engine_factory=scripted(oracle(KNOWN)))
    assert outcome.exit_code == 143
    push = outcome.report.figures.stats.push
    assert push is not None
    assert "SIGTERM while pushing" in push.note
    assert units(config) == 3


class Blocks:
    """Requests about this screen never let `collect` return."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, request: EngineRequest) -> Mishap | None:
        return Mishap.BLOCKS if self.text in request.prompt else None


def test_b080_a_stuck_engine_ends_the_run_and_the_next_ones_find_who_did_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = EngineConfig(hang_seconds=0.5)
    config = slow(tmp_path, grace=1, engine=limits)
    factory = partial(
        ScriptedEngine, oracle(KNOWN), max_in_flight=4, mishap=Blocks("papelera pantalla 2")
    )
    for _ in range(8):  # a scheduler that starts it again
        try:
            outcome = run_job(config, engine_factory=factory)
        except EngineError as error:
            assert "stuck" in str(error)
            monkeypatch.setattr(holder, "_held", [])
            monkeypatch.setattr(holder, "_lock", threading.Lock())
            continue
        break
    assert outcome.exit_code == 0
    rejects = open_dataset(config.output.dataset).table("rejects").to_pylist()
    assert [reject["reason"] for reject in rejects] == ["engine_killer"]


def test_the_heartbeat_says_how_far_it_is_and_what_is_oldest(tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    config = slow(tmp_path, grace=1)
    config = config.model_copy(update={"run": RunConfig(heartbeat_seconds=0.1)})

    def look() -> None:
        """Until a request has been in the engine for a while, which goes on meanwhile."""
        for _ in range(60):
            said = heartbeat(config)
            aged = said["in_flight"] and said["oldest_in_flight"]["seconds"] > 0.2
            if said["units_done"] and aged:
                break
            time.sleep(0.05)
        seen.append(said)

    watch = Calls(look)
    factory = partial(ONE_BY_ONE, oracle(KNOWN))
    assert run_job(config, observer=watch, engine_factory=factory).exit_code == 0
    (during,) = seen
    assert (during["phase"], during["units"], during["units_done"]) == ("annotate", 3, 1)
    assert during["pid"] == os.getpid()
    assert during["in_flight"] >= 1
    assert during["oldest_in_flight"]["seconds"] > 0.2
    assert during["eta_seconds"] > 0
    end = heartbeat(config)
    assert (end["phase"], end["units_done"], end["exit_code"]) == ("ended", 3, 0)
    assert any("requests in the engine, the oldest for" in text for text in watch.ticks)


def test_the_last_heartbeat_of_a_failed_run_says_why(tmp_path: Path) -> None:
    config = slow(tmp_path, grace=1)
    with pytest.raises(EngineError):
        run_job(config, engine_factory=scripted(oracle(KNOWN), fail_after=4))
    assert "died after 4 answers" in str(heartbeat(config)["error"])


def test_the_heartbeat_may_lie_elsewhere(tmp_path: Path) -> None:
    config = slow(tmp_path, grace=1)
    place = tmp_path / "beat" / "job.json"
    config = config.model_copy(update={"run": RunConfig(heartbeat=str(place))})
    run_job(config, engine_factory=scripted(oracle(KNOWN)))
    assert json.loads(place.read_text())["phase"] == "ended"


def test_a_log_says_at_a_steady_pace_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    times = iter([1.0, 6.0, 21.0, 21.0, 21.0])
    progress = Progress(Console(width=120), clock=lambda: next(times))
    progress.start(4, 40)
    progress.tick("the engine is starting for 5.0 s")
    progress.tick("the engine is starting for 20 s")
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == ["0/4 units, 0/40 screens; the engine is starting for 20 s"]
