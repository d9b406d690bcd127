"""Pushing to a real Label Studio 1.23.2: each sample once, each with its prediction."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from review_cases import SCREEN, image_of, many
from studio_server import TOKEN_ENV

from label_studio.client import ServerSettings, StudioClient, connect
from label_studio.failures import explained
from label_studio.images import ScreenImages
from label_studio.project import ensure_project
from label_studio.push import PushReport, push_samples
from label_studio.server import StudioServer
from label_studio.tasks import task_data
from schemas.errors import LabelStudioError
from schemas.review import ReviewSample

pytestmark = pytest.mark.studio


def settings(studio: StudioServer, project: str) -> ServerSettings:
    return ServerSettings(studio.url, project, TOKEN_ENV)


def push(samples: list[ReviewSample], server: ServerSettings, folder: Path) -> PushReport:
    return push_samples(samples, image_of, server, lock_dir=folder)


def on_server(server: ServerSettings, project_id: int) -> list[tuple[str, int]]:
    """Every task of the project, read without our own look-up: sample id and predictions."""
    client = connect(server)
    try:
        tasks = list(client.sdk.tasks.list(project=project_id, fields="all"))
        return sorted((task.data["sample_id"], len(task.predictions)) for task in tasks)
    finally:
        client.close()


def test_three_pushes_leave_each_sample_once_with_its_prediction(
    studio: StudioServer, tmp_path: Path
) -> None:
    server = settings(studio, "Tres envíos")
    first = push(many(120), server, tmp_path)
    second = push(many(120), server, tmp_path)
    third = push(many(121), server, tmp_path)
    assert (first.existing, first.added, first.uploaded, first.failed) == (0, 120, 2, ())
    assert (second.existing, second.added, second.uploaded, second.failed) == (120, 0, 0, ())
    assert (third.existing, third.added, third.uploaded, third.failed) == (120, 1, 0, ())
    assert first.project_id == second.project_id == third.project_id
    assert third.duplicates == ()
    wanted = sorted((sample.sample_id, 1) for sample in many(121))
    assert on_server(server, third.project_id) == wanted


def test_a_push_killed_after_the_tasks_is_repaired_by_the_next(
    studio: StudioServer, tmp_path: Path
) -> None:
    server = settings(studio, "Envío interrumpido")
    client = connect(server)
    project = ensure_project(client, server.project)
    project_id = project.project_id
    images = ScreenImages(project.assets, image_of)
    client.import_tasks(
        project_id,
        [task_data(sample, images.address(sample.screen_id)) for sample in many(4)],
    )
    client.close()
    report = push(many(6), server, tmp_path)
    assert (report.existing, report.added, report.repaired, report.failed) == (4, 2, 4, ())
    assert on_server(server, project_id) == [(f"muestra-{n:03d}", 1) for n in range(6)]


def test_samples_without_a_place_are_tasks_too(studio: StudioServer, tmp_path: Path) -> None:
    server = settings(studio, "Sin lugar")
    samples = [replace(sample, items=()) for sample in many(2)]
    report = push(samples, server, tmp_path)
    assert report.complete
    assert on_server(server, report.project_id) == [("muestra-000", 1), ("muestra-001", 1)]


def test_doubled_tasks_of_others_are_named(studio: StudioServer, tmp_path: Path) -> None:
    server = settings(studio, "Repetidas")
    report = push(many(2), server, tmp_path)
    client = connect(server)
    client.import_tasks(report.project_id, [task_data(many(1)[0], "/data/upload/x.png")])
    client.close()
    again = push(many(2), server, tmp_path)
    assert again.duplicates == ("muestra-000",)
    assert Counter(dict(on_server(server, report.project_id))).total() == 2
    assert again.complete


def test_the_uploaded_picture_is_served_as_it_was_sent(
    studio: StudioServer, tmp_path: Path
) -> None:
    server = settings(studio, "Capturas")
    report = push(many(1), server, tmp_path)
    client = connect(server)
    (ref,) = client.lookup(report.project_id, ["muestra-000"])
    address = client.sdk.tasks.get(str(ref.task_id)).data["image"]
    client.close()
    login = {"Authorization": f"Token {os.environ[TOKEN_ENV]}"}
    assert httpx.get(f"{studio.url}{address}", headers=login).content == SCREEN
    assert httpx.get(f"{studio.url}{address}").status_code == 401


def test_a_personal_access_token_works_like_a_legacy_one(
    studio: StudioServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_PERSONAL", personal_token(studio))
    server = ServerSettings(studio.url, "Con token personal", "TOKEN_PERSONAL")
    assert push(many(1), server, tmp_path).added == 1


def personal_token(studio: StudioServer) -> str:
    """Mint a personal access token as the account page does."""
    with httpx.Client(base_url=studio.url, follow_redirects=True) as http:
        http.get("/user/login/")
        form = {
            "email": studio.account.user,
            "password": studio.account.password,
            "csrfmiddlewaretoken": http.cookies["csrftoken"],
        }
        http.post("/user/login/", data=form, headers={"Referer": studio.url})
        headers = {"X-CSRFToken": http.cookies["csrftoken"], "Referer": studio.url}
        return str(http.post("/api/token/", headers=headers).json()["token"])


def test_a_wrong_token_is_refused_in_words(
    studio: StudioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_MALO", "f" * 40)
    with pytest.raises(LabelStudioError, match=r"the token was not accepted \(401\)"):
        connect(ServerSettings(studio.url, "Da igual", "TOKEN_MALO"))


def test_an_interface_that_would_orphan_answers_is_not_installed(
    studio: StudioServer, tmp_path: Path
) -> None:
    server = settings(studio, "Con respuestas")
    report = push(many(1), server, tmp_path)
    client = connect(server)
    old = client.sdk.projects.get(report.project_id).label_config
    renamed = old.replace('alias="illegible"', 'alias="unreadable"')
    client.sdk.projects.update(report.project_id, label_config=renamed)
    answer(client, report.project_id, "unreadable")
    client.close()
    with pytest.raises(LabelStudioError, match="unreadable"):
        push(many(1), server, tmp_path)


def answer(client: StudioClient, project_id: int, verdict: str) -> None:
    """Answer the only task of a project through the API."""
    (ref,) = client.lookup(project_id, ["muestra-000"])
    choice = {
        "from_name": "verdict",
        "to_name": "image",
        "type": "choices",
        "value": {"choices": [verdict]},
    }
    with explained("answering"):
        client.sdk.annotations.create(id=ref.task_id, result=[choice])
