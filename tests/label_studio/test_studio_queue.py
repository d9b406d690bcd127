"""The queue as a real server deals it out: order, second answers, and what was changed there."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from review_cases import image_of, many
from studio_server import TOKEN_ENV

from label_studio.client import ServerSettings
from label_studio.push import Overlap, PushPlan, push_samples
from label_studio.server import StudioServer
from label_studio.words import Variant
from schemas.errors import LabelStudioError

pytestmark = pytest.mark.studio

CHOICE = {"from_name": "verdict", "to_name": "image", "type": "choices"}
ANSWER = {"result": [{**CHOICE, "value": {"choices": ["correct"]}}]}


def web(studio: StudioServer) -> httpx.Client:
    login = {"Authorization": f"Token {os.environ[TOKEN_ENV]}"}
    return httpx.Client(base_url=studio.url, headers=login, timeout=60)


def test_the_queue_is_the_order_of_priority_and_a_drawn_task_waits_for_two(
    studio: StudioServer, tmp_path: Path
) -> None:
    server = ServerSettings(studio.url, "Orden de la cola", TOKEN_ENV)
    priorities = [0.25, 1.0, 0.05, 0.5, 0.125]
    samples = [
        replace(sample, priority=value) for sample, value in zip(many(5), priorities, strict=True)
    ]
    overlap = Overlap(0.5, 2)
    twice = {s.sample_id for s in samples if overlap.wanted(s.sample_id) == 2}
    assert 0 < len(twice) < 5
    plan = PushPlan(overlap=overlap)
    report = push_samples(samples, image_of, server, plan=plan, lock_dir=tmp_path)
    with web(studio) as http:
        (view,) = http.get("/api/dm/views/", params={"project": report.project_id}).json()
        served = []
        for _ in samples:
            query = {"id": "next_task", "project": report.project_id, "tabID": view["id"]}
            body = {"ordering": view["data"]["ordering"], "selectedItems": {"all": True}}
            task = http.post("/api/dm/actions/", params=query, json=body).json()
            served.append(task["data"]["priority"])
            http.post(f"/api/tasks/{task['id']}/annotations/", json=ANSWER).raise_for_status()
        assert served == sorted(priorities, reverse=True)
        tasks = http.get("/api/tasks/", params={"project": report.project_id, "fields": "all"})
        open_tasks = {t["data"]["sample_id"] for t in tasks.json()["tasks"] if not t["is_labeled"]}
    assert open_tasks == twice
    budget = PushPlan(overlap=overlap, budget=len(twice) + 1)
    more = push_samples(many(9), image_of, server, plan=budget, lock_dir=tmp_path)
    assert (more.existing, more.added, more.waiting) == (5, 1, 3)


def test_what_people_changed_is_named_and_put_back_by_the_real_server(
    studio: StudioServer, tmp_path: Path
) -> None:
    server = ServerSettings(studio.url, "Con cambios", TOKEN_ENV)
    first = push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert first.notes == ()
    with web(studio) as http:
        path = f"/api/projects/{first.project_id}/"
        ours = http.get(path).json()
        changes = {
            "sampling": "Uniform sampling",
            "show_collab_predictions": False,
            "maximum_annotations": 2,
            "title": "Otro nombre",
            "label_config": ours["label_config"].replace("Correcta", "Bien"),
        }
        http.patch(path, json=changes).raise_for_status()
        (view,) = http.get("/api/dm/views/", params={"project": first.project_id}).json()
        data = {**view["data"], "ordering": ["tasks:id"]}
        http.patch(f"/api/dm/views/{view['id']}/", json={"data": data}).raise_for_status()
        report = push_samples(many(1), image_of, server, lock_dir=tmp_path)
        now = http.get(path).json()
    said = " | ".join(report.notes)
    for words in (
        "called 'Otro nombre'",
        "the interface had been changed on the server (its texts or its look)",
        "sampling was 'Uniform sampling'",
        "show_collab_predictions was False",
        "maximum_annotations is 2",
        "sorted otherwise",
    ):
        assert words in said
    assert (report.project_id, report.existing) == (first.project_id, 1)
    kept = ("label_config", "sampling", "show_collab_predictions", "expert_instruction")
    assert [now[name] for name in kept] == [ours[name] for name in kept]
    assert (now["maximum_annotations"], now["title"]) == (2, "Otro nombre")


@pytest.mark.parametrize("variant", [Variant.ARGENTINA, Variant.SPAIN])
def test_another_variant_is_no_drift(
    studio: StudioServer, tmp_path: Path, variant: Variant
) -> None:
    server = ServerSettings(studio.url, f"Variante {variant}", TOKEN_ENV)
    samples = [replace(sample, items=()) for sample in many(2)]
    push_samples(samples, image_of, server, lock_dir=tmp_path)
    plan = PushPlan(variant=variant)
    report = push_samples(samples, image_of, server, plan=plan, lock_dir=tmp_path)
    assert (report.notes, report.refreshed) == ((), 2)
    again = push_samples(samples, image_of, server, plan=plan, lock_dir=tmp_path)
    assert (again.notes, again.refreshed) == ((), 0)


def test_eight_pushes_at_once_leave_each_sample_once(studio: StudioServer, tmp_path: Path) -> None:
    server = ServerSettings(studio.url, "Ocho a la vez", TOKEN_ENV)

    def push(_: int) -> str:
        try:
            push_samples(many(60), image_of, server, lock_dir=tmp_path)
        except LabelStudioError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(8) as pool:
        refused = [said for said in pool.map(push, range(8)) if said]
    assert len(refused) < 8
    assert all("another push" in said for said in refused)
    report = push_samples(many(60), image_of, server, lock_dir=tmp_path)
    assert (report.existing, report.added, report.duplicates, report.complete) == (60, 0, (), True)
