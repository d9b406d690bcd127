"""Every way a picture reaches a reviewer, on real servers: it loads, and hides what must be."""

import io
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from job_fixtures import Shot, job, oracle, scripted, write_tar
from PIL import Image
from s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from studio_server import TOKEN_ENV, logged_in_page

from label_studio.server import StudioServer
from label_studio.storages import KEY_ENV, SECRET_ENV
from pipeline.config import JobConfig, LabelStudioConfig
from pipeline.dataset import Dataset, open_dataset
from pipeline.push import push_dataset
from pipeline.run import run_job

pytestmark = [pytest.mark.studio, pytest.mark.s3]

BUCKET = "capturas-privadas"
HARD_NAME = "Año 2026/Captura 1+1 #2 (ñ).png"
LOOSE, MASKED = (30, 90, 200), (200, 90, 30)


def picture(colour: tuple[int, int, int]) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (320, 200), colour).save(sink, "PNG")
    return sink.getvalue()


def sidecar(masks: list[list[int]] | None) -> bytes:
    fields: dict[str, object] = {"queries": ["Guardar"]}
    if masks is not None:
        fields["masks"] = masks
    return json.dumps(fields).encode()


FILES = {
    HARD_NAME: picture(LOOSE),
    HARD_NAME.replace(".png", ".json"): sidecar([]),
    "tapada.png": picture(MASKED),
    "tapada.json": sidecar([[10, 10, 100, 60]]),
    "sin decir.png": picture((1, 2, 3)),
    "sin decir.json": sidecar(None),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, ACCESS_KEY)
    monkeypatch.setenv(SECRET_ENV, SECRET_KEY)


def annotated(config: JobConfig) -> Dataset:
    known = [Shot("", (320, 200), {"Guardar": None})]
    decision = config.decision.model_copy(update={"threshold": 1.0})  # everything is reviewed
    config = config.model_copy(update={"decision": decision})
    run_job(config, engine_factory=scripted(oracle(known)))
    endpoint = config.input.s3_endpoint
    return open_dataset(config.output.dataset, config.output.s3_endpoint, endpoint)


def pictures_shown(
    studio: StudioServer, dataset: Dataset, settings: LabelStudioConfig
) -> dict[str, tuple[str, bytes]]:
    """Push, then fetch as a logged-in browser would: the address and the bytes by instruction."""
    outcome = push_dataset(dataset, settings)
    project_id = int(urlsplit(outcome.project).path.split("/")[2])
    login = {"Authorization": f"Token {os.environ[TOKEN_ENV]}"}
    shown = {}
    with httpx.Client(base_url=studio.url, headers=login, follow_redirects=False) as http:
        tasks = http.get("/api/tasks/", params={"project": project_id, "fields": "all"}).json()
        for task in tasks["tasks"]:
            reply = http.get(http.get(f"/api/tasks/{task['id']}/").json()["data"]["image"])
            address = str(reply.request.url)
            if reply.is_redirect:
                address = reply.headers["location"]
                reply = httpx.get(address)
            assert reply.status_code == 200, (address, reply.text[:300])
            assert (
                httpx.get(f"{studio.url}{urlsplit(str(reply.request.url)).path}").status_code != 200
            )
            shown[task["data"]["screen_id"]] = (address, reply.content)
    return shown


def settings(studio: StudioServer, title: str, **more: object) -> LabelStudioConfig:
    return LabelStudioConfig.model_validate(
        {"url": studio.url, "project": title, "token_env": TOKEN_ENV, **more}
    )


def check(dataset: Dataset, shown: dict[str, tuple[str, bytes]]) -> dict[str, str]:
    """The open screen is shown as it is, the masked one masked, the third not at all."""
    members = {screen.member: screen for screen in dataset.screens()}
    assert shown.keys() == {members[name].screen_id for name in (HARD_NAME, "tapada.png")}
    assert shown[members[HARD_NAME].screen_id][1] == FILES[HARD_NAME]
    image = Image.open(io.BytesIO(shown[members["tapada.png"].screen_id][1]))
    assert image.size == (320, 200)
    assert [image.getpixel(at) for at in ((10, 10), (99, 59))] == [(0, 0, 0)] * 2
    assert [image.getpixel(at) for at in ((9, 10), (100, 59), (99, 60))] == [MASKED] * 3
    return {name: shown[members[name].screen_id][0] for name in (HARD_NAME, "tapada.png")}


@pytest.mark.parametrize("images", ["s3", "presigned"])
def test_pictures_in_a_private_bucket(
    studio: StudioServer, s3: S3Server, tmp_path: Path, images: str
) -> None:
    s3.put(BUCKET, {f"todas/{name}": data for name, data in FILES.items()})
    config = job(tmp_path, f"s3://{BUCKET}/todas/")
    source = config.input.model_copy(update={"s3_endpoint": s3.endpoint})
    dataset = annotated(config.model_copy(update={"input": source}))
    review = settings(
        studio,
        f"Cubo {images}",
        images=images,
        images_prefix=f"s3://{BUCKET}/copias",
        images_endpoint=s3.endpoint,
        masks="sidecar",
    )
    addresses = check(dataset, pictures_shown(studio, dataset, review))
    for address in addresses.values():
        assert ("X-Amz-Signature" in address) is (images == "presigned")
    with logged_in_page(studio) as page:
        assert shown_size(page, push_dataset(dataset, review).project) == (320, 200)


def shown_size(page, project: str) -> tuple[int, int]:  # noqa: ANN001 - playwright's page
    """The natural size of the picture a reviewer sees first."""
    page.goto(project)
    page.get_by_text("Label All Tasks").click()
    page.get_by_text("Qué se le pide").wait_for()
    page.keyboard.press("Escape")
    picture = page.locator(".pantalla-imagen img").first
    picture.wait_for()
    page.wait_for_function("document.querySelector('.pantalla-imagen img').naturalWidth > 0")
    size = picture.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    return (size[0], size[1])


def test_pictures_in_a_folder_the_server_reads(studio: StudioServer, tmp_path: Path) -> None:
    root = studio.data_dir / "files"
    for name, data in FILES.items():
        path = root / "capturas" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    dataset = annotated(job(tmp_path, f"{root}/capturas/"))
    review = settings(
        studio,
        "Carpeta",
        images="local",
        images_root=str(root),
        images_prefix=str(root / "copias"),
        masks="sidecar",
    )
    addresses = check(dataset, pictures_shown(studio, dataset, review))
    assert "capturas/" in addresses[HARD_NAME]
    assert "copias/" in addresses["tapada.png"]
    with logged_in_page(studio) as page:
        assert shown_size(page, push_dataset(dataset, review).project) == (320, 200)


def test_uploaded_pictures_and_a_mask_that_came_later(studio: StudioServer, tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", FILES)
    dataset = annotated(job(tmp_path, shard))
    title = "Subidas"
    before = pictures_shown(studio, dataset, settings(studio, title))
    assert len(before) == 3, "without masks everything is shown"
    review = settings(studio, title, masks="sidecar")
    outcome = push_dataset(dataset, review)
    assert outcome.pending == 1, "the task of the screen that does not say what to hide"
    assert "does not say what to hide" in outcome.note
    after = pictures_shown(studio, dataset, review)
    members = {screen.member: screen.screen_id for screen in dataset.screens()}
    seen = {name: after[members[name]] for name in (HARD_NAME, "tapada.png")}
    check(dataset, {members[name]: entry for name, entry in seen.items()})
