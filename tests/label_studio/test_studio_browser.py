"""What a reviewer sees, in a real browser on a real server."""

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page
from review_cases import BUTTON, GROUNDING, SCREEN, SCREEN_ID, SIZE
from studio_server import TOKEN_ENV, logged_in_page

from label_studio.client import ServerSettings, connect
from label_studio.push import PushReport, push_samples
from label_studio.server import StudioServer
from schemas.codes import Role, Verdict
from schemas.geometry import Point
from schemas.records import Item

pytestmark = pytest.mark.studio

PICTURES = os.environ.get("PANTALLA_TEST_PICTURES")
"""Folder to keep the screenshots in, for a person to look at."""

MAGENTA = (255, 0, 184)
DRAWING = ".konvajs-content"
SAMPLE = replace(
    GROUNDING,
    sample_id="en-el-navegador",
    screen_id=SCREEN_ID,
    instruction="Guardar la configuración del año",
    items=(Item(point=BUTTON.center, box=BUTTON),),
    candidates=(Item(point=Point(200, 300)),),
)


def pushed(studio: StudioServer, title: str, folder: Path) -> PushReport:
    server = ServerSettings(studio.url, title, TOKEN_ENV)
    report = push_samples([SAMPLE], lambda _: SCREEN, server, lock_dir=folder)
    assert report.complete
    return report


def open_queue(page: Page, report: PushReport) -> None:
    """Start reviewing as people do: the button of the list, then close the guide."""
    page.goto(report.project_url)
    page.get_by_text("Label All Tasks").click()
    page.get_by_text("Qué se le pide").wait_for()
    for picture in page.locator('img[src*="guia-"]').all():
        picture.scroll_into_view_if_needed()
        assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
    shot(page, "guia")
    page.keyboard.press("Escape")
    page.get_by_text("Qué se le pide").wait_for(state="hidden")
    page.locator(DRAWING).wait_for()
    page.locator(".lsf-outliner-item").nth(2).wait_for()
    page.wait_for_timeout(1000)  # the canvas is painted a moment after the list is filled


def shot(page: Page, name: str) -> Image.Image:
    data = page.screenshot()
    if PICTURES:
        Path(PICTURES, f"{name}.png").write_bytes(data)
    return Image.open(io.BytesIO(data)).convert("RGB")


def near(pixel: tuple[int, ...]) -> bool:
    return all(abs(have - want) <= 40 for have, want in zip(pixel, MAGENTA, strict=True))


def drawn_box(page: Page, image: Image.Image) -> tuple[float, float, float, float]:
    """Where magenta lines lie, in pixels of the original screenshot, read off the browser's."""
    area = page.locator(DRAWING).bounding_box()
    assert area is not None
    left, top = int(area["x"]), int(area["y"])
    right = min(image.width, int(area["x"] + area["width"]))
    bottom = min(image.height - 50, int(area["y"] + area["height"]))
    spots = [
        (x, y)
        for x in range(left, right)
        for y in range(top, bottom)
        if near(image.getpixel((x, y)))  # type: ignore[arg-type]  # RGB: a tuple of three
    ]
    assert spots, "no magenta line on the picture"
    scale = SIZE.width / area["width"]
    xs, ys = zip(*spots, strict=True)
    edges = (min(xs) - area["x"], min(ys) - area["y"], max(xs) - area["x"], max(ys) - area["y"])
    return (edges[0] * scale, edges[1] * scale, edges[2] * scale, edges[3] * scale)


def test_a_reviewer_sees_spanish_and_the_box_on_the_element(
    studio: StudioServer, tmp_path: Path
) -> None:
    report = pushed(studio, "Navegador: mirar", tmp_path)
    with logged_in_page(studio) as page:
        open_queue(page, report)
        image = shot(page, "tarea")
        for verdict in Verdict:
            assert page.get_by_text(verdict.spanish).first.is_visible()
        for text in (
            "Guardar la configuración del año",
            "¿Está bien marcado el elemento que pide la instrucción?",
            "Respuesta del modelo: el lugar marcado en la captura.",
        ):
            assert page.get_by_text(text).is_visible()
        area = page.locator(DRAWING).bounding_box()
        assert area is not None
        assert area["y"] + area["height"] < image.height - 50, "the whole picture is seen at once"
        found = drawn_box(page, image)
        assert found == pytest.approx(BUTTON.corners, abs=6)
        assert "40.00%" not in page.inner_text("body"), "the score must not lead the reviewer"


ROLE, INSTRUCTION = "Clase del elemento (opcional)", "Instrucción corregida (opcional)"


def test_a_verdict_brings_what_it_needs_and_nothing_else(
    studio: StudioServer, tmp_path: Path
) -> None:
    report = pushed(studio, "Navegador: veredictos", tmp_path)
    with logged_in_page(studio) as page:
        open_queue(page, report)
        for key, verdict in zip("123456", Verdict, strict=True):
            page.keyboard.press(key)
            corrected = verdict is Verdict.CORRECTED
            asked = corrected or verdict is Verdict.AMBIGUOUS
            page.get_by_text(INSTRUCTION).wait_for(state="visible" if asked else "hidden")
            page.get_by_text(ROLE).wait_for(state="visible" if corrected else "hidden")
            for role in Role:
                label = page.locator(".lsf-label", has_text=role.spanish).first
                assert label.is_visible() is corrected
            shot(page, f"veredicto-{verdict.value}")
        page.keyboard.press("2")
        assert not page.get_by_text("Texto del recuadro (opcional)").is_visible()
        page.locator(".lsf-outliner-item").first.click()
        page.get_by_text("Texto del recuadro (opcional)").wait_for()
        shot(page, "recuadro-elegido")


def test_two_keys_are_a_verdict_with_the_models_place(studio: StudioServer, tmp_path: Path) -> None:
    report = pushed(studio, "Navegador: enviar", tmp_path)
    with logged_in_page(studio) as page:
        open_queue(page, report)
        page.get_by_role("button", name="Submit").first.click()
        page.get_by_text("Elija un veredicto antes de enviar.").wait_for()
        shot(page, "aviso")
        page.keyboard.press("Escape")
        for letter in "vbyiojklnm7890qwtasdfgzxc":
            page.keyboard.press(letter)  # shown nowhere, so they must do nothing
        page.keyboard.press("1")
        with page.expect_response(lambda reply: "/annotations" in reply.url and reply.ok):
            page.keyboard.press("Control+Enter")
    client = connect(ServerSettings(studio.url, "Navegador: enviar", TOKEN_ENV))
    (ref,) = client.lookup(report.project_id, [SAMPLE.sample_id])
    task = client.sdk.tasks.get(str(ref.task_id))
    client.close()
    (annotation,) = task.annotations
    results = {entry["from_name"]: entry for entry in annotation["result"]}
    assert results["verdict"]["value"] == {"choices": ["correct"]}
    assert results["box"]["origin"] == "prediction"
    assert results.keys() == {"verdict", "box", "point", "candidate"}
    box = results["box"]["value"]
    assert (box["x"], box["y"]) == pytest.approx((54.6875, 52.5))
    assert box["rectanglelabels"] == ["element"]
