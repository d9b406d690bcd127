"""What a push survives: the failures that were measured on real servers, over real HTTP."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_studio import FakeState
from filelock import FileLock
from review_cases import SCREEN, image_of, many

from label_studio.client import ServerSettings
from label_studio.push import PushFailure, push_samples
from schemas.errors import DatasetError, LabelStudioError
from schemas.ids import content_id

Fake = tuple[ServerSettings, FakeState]
IMPORT = "POST /api/projects/1/import"


def sample_ids(state: FakeState) -> list[str]:
    return sorted(task["data"]["sample_id"] for task in state.tasks)


def predicted(state: FakeState) -> list[int]:
    return sorted(row["task"] for row in state.predictions)


def test_the_same_push_twice_adds_nothing(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    first = push_samples(many(150), image_of, server, lock_dir=tmp_path)
    again = push_samples(many(151), image_of, server, lock_dir=tmp_path)
    assert (first.wanted, first.existing, first.added, first.uploaded) == (150, 0, 150, 2)
    assert (again.wanted, again.existing, again.added, again.uploaded) == (151, 150, 1, 0)
    assert sample_ids(state) == [f"muestra-{n:03d}" for n in range(151)]
    assert predicted(state) == list(range(1, 152))
    assert len(state.projects) == 2
    assert len(state.views) == 1
    assert state.projects[1]["model_version"] == "pantalla"


def test_tasks_come_in_the_order_of_the_samples(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(3)[::-1], image_of, server, lock_dir=tmp_path)
    order = [task["data"]["sample_id"] for task in state.tasks]
    assert order == ["muestra-002", "muestra-001", "muestra-000"]


def test_an_import_without_an_answer_is_looked_up_not_sent_again(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    state.late["import"] = 1
    report = push_samples(many(5), image_of, server, lock_dir=tmp_path)
    assert (report.added, report.failed) == (5, ())
    assert state.count(IMPORT) == 1
    assert predicted(state) == [1, 2, 3, 4, 5]


def test_an_import_that_vanished_is_pending_and_sent_by_the_next_push(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    state.fail["import"] = [(502, "<html>Bad Gateway</html>")]
    report = push_samples(many(2), image_of, server, lock_dir=tmp_path)
    assert (report.added, report.complete) == (0, False)
    assert [(fail.sample_id, fail.reason) for fail in report.failed] == [
        ("muestra-000", "pending"),
        ("muestra-001", "pending"),
    ]
    assert state.count(IMPORT) == 1
    assert push_samples(many(2), image_of, server, lock_dir=tmp_path).complete
    assert sample_ids(state) == ["muestra-000", "muestra-001"]


def test_a_count_that_nothing_was_kept_for_is_not_believed(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.swallow["import"] = 1
    report = push_samples(many(2), image_of, server, lock_dir=tmp_path)
    assert report.added == 0
    assert {fail.reason for fail in report.failed} == {"pending"}


def test_predictions_that_the_server_lost_are_sent_again(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.swallow["predictions"] = 2
    report = push_samples(many(3), image_of, server, lock_dir=tmp_path)
    assert (report.added, report.failed) == (3, ())
    assert predicted(state) == [1, 2, 3]


def test_predictions_that_are_always_lost_are_reported(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.swallow["predictions"] = 99
    report = push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert report.failed == (PushFailure("muestra-000", "pending", "its task has no prediction"),)


def test_a_prediction_whose_answer_was_lost_is_not_doubled(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.late["predictions"] = 1
    assert push_samples(many(3), image_of, server, lock_dir=tmp_path).complete
    assert predicted(state) == [1, 2, 3]


def test_a_job_killed_between_task_and_prediction_is_repaired(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(3), image_of, server, lock_dir=tmp_path)
    state.predictions.clear()
    report = push_samples(many(3), image_of, server, lock_dir=tmp_path)
    assert (report.existing, report.added, report.repaired) == (3, 0, 3)
    assert predicted(state) == [1, 2, 3]


def test_doubled_tasks_are_named_and_left_alone(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(2), image_of, server, lock_dir=tmp_path)
    state.tasks.append({**state.tasks[0], "id": 9})
    state.predictions.append({"task": 9})
    report = push_samples(many(2), image_of, server, lock_dir=tmp_path)
    assert report.duplicates == ("muestra-000",)
    assert len(state.tasks) == 3


def test_a_refused_import_keeps_the_task_text_out_of_the_error(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    echoed = {"detail": "key is expected", "validation_errors": {"data": "Guardar los cambios"}}
    state.fail["import"] = [(400, echoed)]
    report = push_samples(many(1), image_of, server, lock_dir=tmp_path)
    (failure,) = report.failed
    assert failure == PushFailure(
        "muestra-000", "refused", "importing 1 tasks: the server answered 400"
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((401, {"detail": "Invalid token."}), "the token was not accepted (401): Invalid token."),
        (
            (
                401,
                {
                    "detail": "Authentication token no longer valid: legacy token "
                    "authentication has been disabled for this organization"
                },
            ),
            "this server takes no legacy tokens",
        ),
        ((403, {"detail": "Forbidden"}), "the server answered 403: Forbidden"),
        ((200, "<html>hola</html>"), "the server answered 200"),
    ],
)
def test_a_refused_login_says_why_and_nothing_secret(
    fake: Fake, tmp_path: Path, reply: tuple[int, object], said: str
) -> None:
    server, state = fake
    state.fail["whoami"] = [reply]
    with pytest.raises(LabelStudioError) as caught:
        push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert said in str(caught.value)
    assert "sessionid" not in str(caught.value)
    assert "0123456789abcdef" not in str(caught.value)


def test_a_redirect_is_refused_before_anything_is_sent(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.redirect_to = "https://etiquetas.example.com"
    with pytest.raises(LabelStudioError, match=r"redirects to https://etiquetas\.example\.com"):
        push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert state.requests == ["GET /api/version"]


def test_an_absent_server_is_named(fake: Fake, tmp_path: Path) -> None:
    server, _ = fake
    nowhere = replace(server, url="http://127.0.0.1:9")
    with pytest.raises(
        LabelStudioError, match=r"http://127\.0\.0\.1:9: the server was not reached"
    ):
        push_samples(many(1), image_of, nowhere, lock_dir=tmp_path)


def test_something_else_on_the_port_is_not_taken_for_label_studio(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    state.fail["GET /api/version"] = [(404, {"detail": "Not found."})]
    with pytest.raises(LabelStudioError, match="not Label Studio"):
        push_samples(many(1), image_of, server, lock_dir=tmp_path)


def test_a_missing_token_names_its_variable(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN_DE_PRUEBA")
    with pytest.raises(LabelStudioError, match="set the environment variable TOKEN_DE_PRUEBA"):
        push_samples(many(1), image_of, fake[0], lock_dir=tmp_path)


def test_two_projects_of_one_title_are_not_guessed_between(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    state.projects = {n: {"id": n, "title": server.project} for n in (4, 7)}
    with pytest.raises(LabelStudioError, match=r"2 projects .*ids \[4, 7\]"):
        push_samples(many(1), image_of, server, lock_dir=tmp_path)


def test_a_second_pusher_is_refused(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    lock = tmp_path / f"{content_id([server.url, server.project])}.lock"
    with FileLock(lock), pytest.raises(LabelStudioError, match="another push"):
        push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert state.tasks == []


def test_a_bad_sample_and_a_bad_picture_fail_alone(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    samples = many(4)
    samples[1] = replace(samples[1], priority=1.7)
    samples[2] = replace(samples[2], screen_id="c" * 64)

    def pictures(screen_id: str) -> bytes:
        if screen_id == "c" * 64:
            raise DatasetError("capturas.tar: tres.png has changed")
        return SCREEN

    report = push_samples(samples, pictures, server, lock_dir=tmp_path)
    assert sample_ids(state) == ["muestra-000", "muestra-003"]
    assert report.failed == (
        PushFailure("muestra-001", "invalid", "priority is 1.7, not in 0..1"),
        PushFailure("muestra-002", "image", "capturas.tar: tres.png has changed"),
    )
    assert (report.wanted, report.added) == (4, 2)


def test_a_repeated_sample_is_one_task(fake: Fake, tmp_path: Path) -> None:
    report = push_samples(many(2) + many(2), image_of, fake[0], lock_dir=tmp_path)
    assert (report.wanted, report.added) == (2, 2)


def test_a_changed_interface_is_validated_before_it_is_sent(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    state.projects[1]["label_config"] = "<View/>"
    state.fail["POST /api/projects/1/validate/"] = [
        (400, {"detail": "Validation error", "validation_errors": {"label_config": ["in use"]}})
    ]
    with pytest.raises(LabelStudioError, match="in use"):
        push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert state.projects[1]["label_config"] == "<View/>"
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert 'alias="correct"' in state.projects[1]["label_config"]


def test_older_texts_stay_where_the_server_refuses_ours(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    push_samples(many(1), image_of, server, lock_dir=tmp_path)
    older = state.projects[1]["label_config"].replace("Corregida", "Cambiada")
    state.projects[1]["label_config"] = older
    refusal = [(400, {"validation_errors": ["zzz exists in annotations"]})]
    state.fail["POST /api/projects/1/validate/"] = refusal
    report = push_samples(many(2), image_of, server, lock_dir=tmp_path)
    assert report.added == 1, "an answer that is not ours must not stop the queue"
    assert "zzz exists" in report.notes[0]
    assert state.projects[1]["label_config"] == older
