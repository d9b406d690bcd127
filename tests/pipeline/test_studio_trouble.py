"""Label Studio in trouble at the end of a run: the run does not fail, and nothing is doubled."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from fake_studio import TOKEN, FakeState, fake_studio
from job_fixtures import job, oracle, scripted, shots, write_shard

from label_studio.client import ServerSettings
from pipeline.config import DecisionConfig, JobConfig, LabelStudioConfig
from pipeline.dataset import open_root
from pipeline.push import push_job
from pipeline.run import RunOutcome, run_job
from pipeline.verify import verify_dataset

KNOWN = shots(3)
SAMPLES = 9


@dataclass
class Trouble:
    """How the server misbehaves, once for each entry, and how many samples it leaves pending."""

    fail: dict[str, list[tuple[int, object]]] = field(default_factory=dict)
    swallow: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    redirect_to: str = ""
    pending: int = SAMPLES


TROUBLES = {
    "wrong token": Trouble(fail={"whoami": [(401, {"detail": "Invalid token."})] * 9}),
    "forbidden": Trouble(fail={"whoami": [(403, {"detail": "Forbidden"})] * 9}),
    "redirect": Trouble(redirect_to="https://etiquetas.example.com"),
    "gateway": Trouble(fail={"import": [(502, "<html>Bad Gateway</html>")] * 9}),
    "busy": Trouble(fail={"import": [(503, "<html>Unavailable</html>")] * 9}),
    "crash": Trouble(fail={"import": [(500, {"detail": "boom"})] * 9}),
    "import that kept nothing": Trouble(swallow={"import": 9}),
    "import whose answer was lost": Trouble(late={"import": 1}, pending=0),
    "lost predictions": Trouble(swallow={"predictions": 99}),
    "prediction whose answer was lost": Trouble(late={"predictions": 1}, pending=0),
}


@pytest.fixture
def studio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[str, FakeState]]:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    patient = partial(ServerSettings, settle_waits_s=(0.01,) * 4)  # in earnest it waits a minute
    monkeypatch.setattr("pipeline.push.ServerSettings", patient)
    with fake_studio() as running:
        yield running


def reviewed(tmp_path: Path, url: str) -> JobConfig:
    """A job whose samples all go to people."""
    return job(
        tmp_path,
        write_shard(tmp_path / "a.tar", KNOWN),
        decision=DecisionConfig(threshold=1.0, audit_share=1.0),
        label_studio=LabelStudioConfig(url=url),
    )


def run(config: JobConfig) -> RunOutcome:
    return run_job(config, engine_factory=scripted(oracle(KNOWN)), push=push_job)


def once_each(state: FakeState) -> None:
    ids = [task["data"]["sample_id"] for task in state.tasks]
    assert len(ids) == len(set(ids)) == SAMPLES
    predicted = sorted(prediction["task"] for prediction in state.predictions)
    assert predicted == sorted(task["id"] for task in state.tasks)


@pytest.mark.parametrize("name", TROUBLES)
def test_a_run_ends_well_and_the_next_one_completes_the_push(
    studio: tuple[str, FakeState], tmp_path: Path, name: str
) -> None:
    url, state = studio
    trouble = TROUBLES[name]
    state.fail = {action: list(replies) for action, replies in trouble.fail.items()}
    state.swallow, state.late = dict(trouble.swallow), dict(trouble.late)
    state.redirect_to = trouble.redirect_to
    config = reviewed(tmp_path, url)
    outcome = run(config)
    stats = outcome.report.figures.stats
    assert stats.push is not None
    assert stats.push.pending == trouble.pending
    assert outcome.exit_code == (1 if trouble.pending else 0)
    assert TOKEN not in stats.push.note + outcome.reason
    assert verify_dataset(open_root(config.output.dataset)).whole
    state.fail, state.swallow, state.late, state.redirect_to = {}, {}, {}, ""
    again = run(config)
    assert (again.exit_code, again.report.figures.stats.units_done) == (0, 0)
    once_each(state)


def test_a_server_that_is_down_leaves_all_pending_until_it_is_up(
    studio: tuple[str, FakeState], tmp_path: Path
) -> None:
    url, state = studio
    config = reviewed(tmp_path, "http://127.0.0.1:9")
    outcome = run(config)
    assert (outcome.exit_code, outcome.reason) == (
        1,
        f"{SAMPLES} review rows are not on the server yet",
    )
    up = config.model_copy(update={"label_studio": LabelStudioConfig(url=url)})
    assert run(up).exit_code == 0
    once_each(state)
