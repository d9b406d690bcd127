"""What a push decides beside sending: how many, for how many people, in whose words."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_studio import FakeState
from review_cases import SCREEN, image_of, many

from label_studio.client import ServerSettings
from label_studio.images import UncoveredError
from label_studio.push import Overlap, PushPlan, push_samples
from label_studio.pushing import MAX_BODY_BYTES, sized
from label_studio.words import Variant
from schemas.errors import LabelStudioError
from schemas.review import ReviewSample

Fake = tuple[ServerSettings, FakeState]
IMPORT = "POST /api/projects/1/import"


def sample_ids(state: FakeState) -> list[str]:
    return sorted(task["data"]["sample_id"] for task in state.tasks)


def test_no_more_tasks_are_open_than_the_budget_says(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    plan = PushPlan(budget=3)
    first = push_samples(many(5), image_of, server, plan=plan, lock_dir=tmp_path)
    assert (first.added, first.waiting, first.complete) == (3, 2, False)
    assert sample_ids(state) == ["muestra-000", "muestra-001", "muestra-002"]
    again = push_samples(many(5), image_of, server, plan=plan, lock_dir=tmp_path)
    assert (again.existing, again.added, again.waiting) == (3, 0, 2)
    state.tasks[0]["total_annotations"] = 1
    third = push_samples(many(5), image_of, server, plan=plan, lock_dir=tmp_path)
    assert (third.added, third.waiting) == (1, 1)
    assert sample_ids(state)[-1] == "muestra-003"
    assert third.wanted == third.existing + third.added + third.waiting


def test_a_smaller_budget_than_what_is_open_sends_nothing_and_removes_nothing(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    push_samples(many(4), image_of, server, lock_dir=tmp_path)
    report = push_samples(many(6), image_of, server, plan=PushPlan(budget=2), lock_dir=tmp_path)
    assert (report.existing, report.added, report.waiting) == (4, 0, 2)
    assert len(state.tasks) == 4


def test_what_cannot_be_pushed_takes_no_place_of_the_budget(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.poison = {"muestra-000", "muestra-001", "muestra-002"}
    report = push_samples(many(6), image_of, server, plan=PushPlan(budget=2), lock_dir=tmp_path)
    assert (report.added, report.waiting, len(report.failed)) == (2, 1, 3)
    assert sample_ids(state) == ["muestra-003", "muestra-004"]


def test_a_drawn_share_waits_for_two_answers(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    plan = PushPlan(overlap=Overlap(0.3, 2))
    push_samples(many(100), image_of, server, plan=plan, lock_dir=tmp_path)
    twice = {t["data"]["sample_id"] for t in state.tasks if t.get("overlap", 1) == 2}
    assert 15 < len(twice) < 45
    assert twice == {s.sample_id for s in many(100) if Overlap(0.3).wanted(s.sample_id) == 2}
    before = len(state.requests)
    push_samples(many(100), image_of, server, plan=plan, lock_dir=tmp_path)
    assert not [line for line in state.requests[before:] if line.startswith("PATCH /api/tasks")]


def test_an_answered_task_is_not_reopened_for_a_second_answer(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(2), image_of, server, lock_dir=tmp_path)
    state.tasks[0]["total_annotations"] = 1
    plan = PushPlan(overlap=Overlap(1.0, 2))
    push_samples(many(2), image_of, server, plan=plan, lock_dir=tmp_path)
    assert [task.get("overlap", 1) for task in state.tasks] == [1, 2]


def test_open_tasks_get_new_words_and_answered_ones_keep_theirs(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    samples = [replace(sample, items=()) for sample in many(2)]
    push_samples(samples, image_of, server, lock_dir=tmp_path)
    state.tasks[0]["total_annotations"] = 1
    plan = PushPlan(variant=Variant.ARGENTINA)
    report = push_samples(samples, image_of, server, plan=plan, lock_dir=tmp_path)
    questions = [task["data"]["question"] for task in state.tasks]
    assert [question.rsplit(" ", 1)[1] for question in questions] == ["Márquelo.", "Marcalo."]
    assert (report.refreshed, report.notes) == (1, ())
    assert "Vos decís" in state.projects[1]["expert_instruction"]
    assert "Elegí un veredicto" in state.projects[1]["label_config"]


def test_the_order_a_task_was_given_stays(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    moved = [replace(sample, priority=0.9, instruction="Otra cosa") for sample in many(1)]
    push_samples(moved, image_of, server, lock_dir=tmp_path)
    assert state.tasks[0]["data"]["priority"] == 0.0
    assert state.tasks[0]["data"]["instruction"] == "Otra cosa"


def test_nothing_on_the_server_tells_how_sure_the_model_was(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(3), image_of, server, lock_dir=tmp_path)
    assert not any({"probability", "score", "route"} & task["data"].keys() for task in state.tasks)
    assert not any("score" in prediction for prediction in state.predictions)
    assert all(prediction["model_version"] == "pantalla" for prediction in state.predictions)
    assert state.views[0]["data"]["ordering"] == ["-tasks:data.priority"]


def test_a_refused_sample_is_found_by_halving_and_its_neighbours_are_kept(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    state.poison = {"muestra-003", "muestra-017"}
    report = push_samples(many(20), image_of, server, lock_dir=tmp_path)
    assert {failure.sample_id for failure in report.failed} == state.poison
    assert {failure.reason for failure in report.failed} == {"refused"}
    assert (report.added, len(state.tasks)) == (18, 18)
    assert state.count(IMPORT) < 20
    state.poison = set()
    again = push_samples(many(20), image_of, server, lock_dir=tmp_path)
    assert (again.existing, again.added, again.complete) == (18, 2, True)


def test_a_server_that_stopped_answering_is_not_asked_for_every_batch(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    state.fail["import"] = [(502, "")] * 9
    report = push_samples(many(350), image_of, server, lock_dir=tmp_path)
    assert state.count(IMPORT) == 1
    assert {failure.reason for failure in report.failed} == {"pending"}
    assert len(report.failed) == 350


def test_requests_stay_below_what_proxies_take() -> None:
    rows = list(range(1, 1000))
    size = MAX_BODY_BYTES // 100
    parts = list(sized(rows, lambda row: size if row != 500 else 3 * MAX_BODY_BYTES))
    assert [row for part in parts for row in part] == rows
    assert [500] in parts
    assert max(len(part) for part in parts) == 100


def test_a_push_that_lost_its_lease_writes_nothing_more(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    calls = iter([None, LabelStudioError("another push of this dataset has taken over")])

    def still_ours() -> None:
        error = next(calls)
        if error:
            raise error

    plan = PushPlan(still_ours=still_ours)
    with pytest.raises(LabelStudioError, match="taken over"):
        push_samples(many(150), image_of, server, plan=plan, lock_dir=tmp_path)
    assert state.tasks == []


class Hidden:
    """Every screen has something to hide; of one nobody knows what."""

    def __init__(self, unknown: str) -> None:
        self.unknown = unknown

    def key(self, screen_id: str) -> str:
        if screen_id == self.unknown:
            raise UncoveredError("tapar.png: its sidecar does not say what to hide")
        return f"{screen_id}-m0123456789"

    def is_masked(self, screen_id: str) -> bool:
        return bool(self.key(screen_id))

    def served(self, screen_id: str) -> str | None:
        return None


def test_a_screen_that_cannot_be_covered_is_not_shown_and_is_counted(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    plan = PushPlan(places=Hidden("b" * 64))
    report = push_samples(many(4), image_of, server, plan=plan, lock_dir=tmp_path)
    assert [(f.sample_id, f.reason) for f in report.failed] == [
        ("muestra-000", "masks"),
        ("muestra-002", "masks"),
    ]
    assert all("-m0123456789.png" in task["data"]["image"] for task in state.tasks)


def test_an_open_picture_of_before_is_replaced_also_under_an_answered_task(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    push_samples(many(2), image_of, server, lock_dir=tmp_path)
    state.tasks[0]["total_annotations"] = 1
    plan = PushPlan(places=Hidden("c" * 64))
    report = push_samples(many(2), image_of, server, plan=plan, lock_dir=tmp_path)
    assert all("-m0123456789.png" in task["data"]["image"] for task in state.tasks)
    assert report.refreshed == 2


def changed(**settings: object) -> Callable[[FakeState], None]:
    return lambda state: state.projects[1].update(settings)


def sorted_otherwise(state: FakeState) -> None:
    state.views[0]["data"] = {**state.views[0]["data"], "ordering": ["tasks:id"]}


def edited_interface(state: FakeState) -> None:
    config = state.projects[1]["label_config"]
    state.projects[1]["label_config"] = config.replace('alias="illegible"', 'alias="borrosa"')


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed(sampling="Uniform sampling"), "sampling was 'Uniform sampling' on the server"),
        (changed(show_collab_predictions=False), "show_collab_predictions was False on the server"),
        (changed(maximum_annotations=3), "maximum_annotations is 3 on the server, not 1: left"),
        (changed(title="Revisión de María"), "the project is called 'Revisión de María'"),
        (changed(expert_instruction="<p>Mía</p>"), "the guide was edited on the server and was"),
        (changed(model_version="otra"), "model_version was 'otra' on the server: put back"),
        (sorted_otherwise, "the view 'Por revisar' was sorted otherwise: its order was put back"),
        (edited_interface, "no 'illegible' in 'verdict', 'borrosa' in 'verdict'): it was put back"),
    ],
)
def test_what_a_person_changed_is_named(
    fake: Fake, tmp_path: Path, change: Callable[[FakeState], None], said: str
) -> None:
    server, state = fake
    push_samples(many(2), image_of, server, lock_dir=tmp_path)
    change(state)
    report = push_samples(many(3), image_of, server, lock_dir=tmp_path)
    (note,) = report.notes
    assert said in note
    assert (report.existing, report.added) == (2, 1), "a renamed project is not made anew"
    quiet = push_samples(many(3), image_of, server, lock_dir=tmp_path).notes
    left = ("maximum_annotations" in said, "called" in said, "guide" in said)
    assert quiet == (report.notes if any(left) else ())


def test_a_guide_of_an_older_version_is_replaced_and_an_edited_one_is_not(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    ours = state.projects[1]["expert_instruction"]
    state.projects[1]["expert_instruction"] = ""
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert state.projects[1]["expert_instruction"] == ours
    edited = ours.replace("captura", "imagen")
    state.projects[1]["expert_instruction"] = edited
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert state.projects[1]["expert_instruction"] == edited


def test_an_interface_the_server_will_not_give_up_says_what_to_do(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    edited_interface(state)
    reply = {"detail": "Validation error", "validation_errors": {"label_config": ["in use"]}}
    state.fail["POST /api/projects/1/validate/"] = [(400, reply)]
    with pytest.raises(LabelStudioError, match=r"'borrosa' in 'verdict'.*label_studio\.project"):
        push_samples(many(1), image_of, server, lock_dir=tmp_path)


@pytest.mark.parametrize("count", [100, 101, 250])
def test_every_task_is_found_however_many_pages_it_would_take(
    fake: Fake, tmp_path: Path, count: int
) -> None:
    server, state = fake
    push_samples(many(count), image_of, server, lock_dir=tmp_path)
    again = push_samples(many(count), image_of, server, lock_dir=tmp_path)
    assert (again.existing, again.added, len(state.tasks)) == (count, 0, count)


def test_a_changed_picture_is_another_sample_and_the_old_one_stays(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    samples: list[ReviewSample] = many(10)
    push_samples(samples, image_of, server, lock_dir=tmp_path)
    push_samples(samples, image_of, server, lock_dir=tmp_path)
    state.tasks[4]["total_annotations"] = 1
    old = dict(state.tasks[4]["data"])
    samples[4] = replace(samples[4], sample_id="muestra-nueva", screen_id="d" * 64)
    push_samples(samples, lambda _: SCREEN, server, lock_dir=tmp_path)
    assert len(state.tasks) == 11
    assert state.tasks[4]["data"] == old
