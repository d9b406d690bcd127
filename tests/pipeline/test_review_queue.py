"""`pantalla review status` and `retire`, on a fake server with people in it."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_reviews import START, ReviewState, fake_reviews
from fake_studio import TOKEN
from stored_fixtures import Ask, Stored, make_stored, sample_id

from label_studio.client import ServerSettings, connect
from label_studio.pull import server_tasks
from label_studio.pull_queue import remove_untouched
from pipeline.cli.app import main
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.push import push_dataset
from pipeline.review_status import ReviewStatus, review_status

SCREENS = (
    Stored("uno", tuple(Ask(f"Abrir {n}", point=(n, n)) for n in range(8))),
    Stored("dos", (Ask("Aceptada", "accept", probability=0.9),), colour=(1, 2, 3)),
)
NEWER = (
    Stored("uno", tuple(Ask(f"Abrir {n}", point=(n, n)) for n in range(2))),
    Stored("dos", (Ask("Aceptada", "accept", probability=0.9),), colour=(1, 2, 3)),
)
ELSEWHERE = (Stored("otra", (Ask("Cerrar", point=(1, 1)),), colour=(7, 8, 9)),)
Queue = tuple[Dataset, str, ReviewState]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Queue]:
    """Eight samples on the server, and one of another dataset in the same project."""
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fake_reviews() as (url, state):
        dataset = make_stored(made(tmp_path, "viejo"), SCREENS)
        other = make_stored(made(tmp_path, "otro"), ELSEWHERE)
        for pushed in (dataset, other):
            assert push_dataset(pushed, LabelStudioConfig(url=url)).pending == 0
        yield dataset, url, state


def made(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def verdict(code: str = "absent") -> list[dict[str, Any]]:
    return [{"from_name": "verdict", "type": "choices", "value": {"choices": [code]}}]


def key(number: int) -> str:
    return sample_id("uno", number)


def looked(queue: Queue, days_later: int = 0) -> ReviewStatus:
    dataset, url, _ = queue
    client = connect(ServerSettings(url, "Pantalla: revisión"))
    try:
        now = START + timedelta(days=days_later, hours=20)
        return review_status(dataset, client, 1, now)
    finally:
        client.close()


def test_the_status_adds_up_and_tells_pace_and_end(queue: Queue) -> None:
    _, _, state = queue
    state.annotate(key(0), verdict(), lead_time=30)
    state.annotate(key(1), [], skipped=True)
    state.task(key(2))["drafts"] = [{"id": 1}]
    state.ticks = 86_400
    for number in (3, 4):
        state.annotate(key(number), verdict(), lead_time=90)
    state.tasks.remove(state.task(key(7)))
    found = looked(queue, days_later=1)
    assert (found.to_review, found.waiting, found.finished, found.not_pushed) == (8, 4, 3, 1)
    assert (found.begun, found.skipped, found.superseded) == (1, 1, 1)
    assert (found.today, found.per_day, found.minutes) == (2, 1.5, 1.5)
    assert found.hours_left == pytest.approx(0.1)
    assert found.ends == date(2026, 1, 5), "four tasks at one and a half a day are three days"


def test_without_a_finished_task_there_is_no_end(queue: Queue) -> None:
    found = looked(queue)
    assert (found.waiting, found.today, found.per_day) == (8, 0, 0)
    assert (found.minutes, found.hours_left, found.ends) == (None, None, None)


def test_what_was_done_before_the_week_is_not_the_pace(queue: Queue) -> None:
    queue[2].annotate(key(0), verdict())
    found = looked(queue, days_later=30)
    assert (found.finished, found.today, found.per_day, found.ends) == (1, 0, 0, None)


def test_the_status_command_speaks(queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    dataset, url, _ = queue
    assert command(["review", "status", dataset.uri, "--url", url]) == 0
    said = capsys.readouterr().out
    assert "To review              8\n  waiting              8 (0 begun, 0 skipped)\n" in said
    assert "Estimated end          no task was finished in the last 7 days\n" in said


def on_server(state: ReviewState) -> set[str]:
    return {task["data"]["sample_id"] for task in state.tasks}


def test_retire_takes_out_what_is_superseded_and_nobody_touched(
    queue: Queue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, url, state = queue
    newer = make_stored(made(tmp_path, "nuevo"), NEWER)
    state.annotate(key(2), verdict())
    state.annotate(key(3), [], skipped=True)
    state.task(key(4))["drafts"] = [{"id": 1}]
    before = on_server(state)
    words = ["review", "retire", newer.uri, "--url", url]
    assert command(words) == 0
    said = capsys.readouterr().out
    assert "Superseded, untouched  3\nSuperseded, touched    3 (they stay)\n" in said
    assert "Of other screens       1 (they stay; see --elsewhere)\n" in said
    assert "--yes" in said
    assert on_server(state) == before, "a dry run changes nothing"
    assert command([*words, "--yes"]) == 0
    assert "Taken out              3\n" in capsys.readouterr().out
    assert before - on_server(state) == {key(5), key(6), key(7)}
    assert command([*words, "--yes"]) == 0
    assert "Taken out              0\n" in capsys.readouterr().out


def test_retire_takes_tasks_of_other_screens_only_when_asked(queue: Queue) -> None:
    dataset, url, state = queue
    assert command(["review", "retire", dataset.uri, "--url", url, "--elsewhere", "--yes"]) == 0
    assert on_server(state) == {key(number) for number in range(8)}


def test_an_answer_that_comes_at_the_last_moment_saves_its_task(queue: Queue) -> None:
    _, url, state = queue
    client = connect(ServerSettings(url, "Pantalla: revisión"))
    ids = [task.id for page in server_tasks(client, 1) for task in page]
    state.annotate(key(0), verdict())
    assert remove_untouched(client, 1, ids) == len(ids) - 1
    client.close()
    assert on_server(state) == {key(0)}


def test_an_answer_that_the_server_does_not_count_saves_its_task(queue: Queue) -> None:
    _, url, state = queue
    client = connect(ServerSettings(url, "Pantalla: revisión"))
    ids = [task.id for page in server_tasks(client, 1) for task in page]
    state.annotate(key(0), verdict())
    state.uncounted = {state.task(key(0))["id"]}
    assert remove_untouched(client, 1, ids) == len(ids) - 1
    client.close()
    assert on_server(state) == {key(0)}


def command(words: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        main(words)
    except SystemExit as caught:
        return int(caught.code or 0)
    return 0
