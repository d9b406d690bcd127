"""A reviewer's day in a real browser on a real server, and back to the pixel.

`PANTALLA_TEST_PICTURES=folder` keeps a picture of every step, for a person to look at.
"""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Page
from stored_fixtures import Ask, Stored, make_stored, sample_id
from studio_server import TOKEN_ENV, logged_in_page

from label_studio.server import StudioServer
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.gold import make_gold
from pipeline.pull import pull_dataset
from pipeline.push import push_dataset

pytestmark = pytest.mark.studio

PICTURES = os.environ.get("PANTALLA_TEST_PICTURES")
SIZE = (1280, 800)
SAVE = (700.0, 420.0, 860.0, 470.0)
"""Where the model saw the button, original px; the drawn one is wider and lower."""
TRUE_SAVE = (700.0, 420.0, 900.0, 500.0)
MENU = (60.0, 20.0, 120.0, 50.0)
CORRECT, SKIP, ABSENT = "Guardar los cambios", "Abrir el menú", "Imprimir el año"
DRAWING = ".konvajs-content"
SUBPIXEL = 1e-3


def screen() -> bytes:
    image = Image.new("RGB", SIZE, (244, 244, 246))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, SIZE[0], 64), fill=(40, 60, 90))
    draw.rectangle(MENU, fill=(90, 120, 160))
    draw.rectangle(TRUE_SAVE, fill=(30, 90, 200))
    draw.text((760, 450), "Guardar", fill="white")
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


SCREENS = (
    Stored(
        "uno",
        (
            Ask(CORRECT, point=(780, 445), boxes=(SAVE,), probability=0.1),
            Ask(SKIP, point=(90, 35), boxes=(MENU,), probability=0.2),
            Ask(ABSENT, point=(300, 600), boxes=((250, 580, 350, 620),), probability=0.3),
        ),
        size=SIZE,
        data=screen(),
    ),
)


class Steps:
    """Pictures of what the browser shows, numbered in order."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def shot(self, name: str) -> None:
        self.count += 1
        data = self.page.screenshot()
        if PICTURES:
            Path(PICTURES, f"revision-{self.count:02d}-{name}.png").write_bytes(data)


@pytest.fixture(scope="module")
def day(
    studio: StudioServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Dataset, LabelStudioConfig, list[float]]]:
    """A corrected, a skipped and an absent task; gives where the mouse left the box."""
    dataset = make_stored(tmp_path_factory.mktemp("revision"), SCREENS)
    settings = LabelStudioConfig(url=studio.url, project="Un día de revisión", token_env=TOKEN_ENV)
    outcome = push_dataset(dataset, settings)
    assert (outcome.tasks_new, outcome.pending) == (3, 0)
    with logged_in_page(studio) as page:
        steps = Steps(page)
        start(page, str(outcome.project), steps)
        box: list[float] = []
        for _ in range(3):
            asked = instruction(page)
            ready(page)
            steps.shot(f"tarea-{asked.split()[0].lower()}")
            if asked == CORRECT:
                box = correct(page, steps)
            elif asked == SKIP:
                skip(page, steps)
            else:
                say_absent(page, steps)
            page.get_by_text(asked, exact=True).wait_for(state="hidden")
        steps.shot("al-final")
    assert box
    yield dataset, settings, box


def start(page: Page, project: str, steps: Steps) -> None:
    """From the list of tasks into the queue, past the guide."""
    page.goto(project)
    button = page.get_by_text("Label All Tasks")
    button.wait_for()
    steps.shot("lista")
    button.click()
    page.get_by_text("Qué se le pide").wait_for()
    steps.shot("guia")
    page.keyboard.press("Escape")
    page.get_by_text("Qué se le pide").wait_for(state="hidden")


def ready(page: Page) -> None:
    """Wait until the picture and the model's regions are drawn."""
    page.locator(DRAWING).wait_for()
    page.locator(".lsf-outliner-item").nth(1).wait_for()
    page.wait_for_timeout(1500)  # the canvas is painted a moment after the list is filled


def instruction(page: Page) -> str:
    """What the task that is open asks for."""
    texts = re.compile("|".join(f"^{text}$" for text in (CORRECT, SKIP, ABSENT)))
    heading = page.locator("h2").filter(has_text=texts)
    heading.wait_for()
    return heading.inner_text()


def correct(page: Page, steps: Steps) -> list[float]:
    """Drag the lower right corner of the model's box onto the button's; gives where it is now."""
    page.keyboard.press("2")
    page.locator(".lsf-outliner-item", has_text=re.compile("Botón")).first.click()
    page.wait_for_timeout(500)
    steps.shot("recuadro-elegido")
    area = page.locator(DRAWING).bounding_box()
    assert area is not None
    scale = SIZE[0] / area["width"]
    from_x, from_y = area["x"] + SAVE[2] / scale, area["y"] + SAVE[3] / scale
    across, down = round((TRUE_SAVE[2] - SAVE[2]) / scale), round((TRUE_SAVE[3] - SAVE[3]) / scale)
    page.mouse.move(from_x, from_y)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(from_x + across * step / 5, from_y + down * step / 5)
    page.mouse.up()
    page.wait_for_timeout(500)
    steps.shot("esquina-arrastrada")
    send(page)
    return [*SAVE[:2], SAVE[2] + across * scale, SAVE[3] + down * scale]


def skip(page: Page, steps: Steps) -> None:
    button = page.get_by_role("button", name="Skip").first
    steps.shot("antes-de-omitir")
    with page.expect_response(lambda reply: "/annotations" in reply.url and reply.ok):
        button.click()


def say_absent(page: Page, steps: Steps) -> None:
    page.keyboard.press("3")
    page.wait_for_timeout(300)
    steps.shot("no-existe")
    send(page)


def send(page: Page) -> None:
    with page.expect_response(lambda reply: "/annotations" in reply.url and reply.ok):
        page.keyboard.press("Control+Enter")


Day = tuple[Dataset, LabelStudioConfig, list[float]]


def test_the_corrected_box_comes_back_where_the_mouse_left_it(day: Day) -> None:
    dataset, settings, box = day
    report = pull_dataset(dataset, settings)
    assert (report.new, report.skipped, report.blocked, report.strangers) == (3, 1, 0, 0)
    rows = {row["sample_id"]: row for row in dataset.reviews().to_pylist()}
    row = rows[sample_id("uno", 0)]
    assert (row["verdict"], row["origin"], row["flags"]) == ("corrected", "prediction-changed", [])
    corners = [row[name] for name in ("x1", "y1", "x2", "y2")]
    assert corners[:2] == pytest.approx(SAVE[:2], abs=SUBPIXEL)
    assert corners == pytest.approx(box, abs=1.0)
    assert corners == pytest.approx(TRUE_SAVE, abs=2.0)
    assert (row["x"], row["y"], row["point_origin"]) == (780, 445, "prediction")
    assert row["lead_time_s"] > 0
    assert row["image_width"] == SIZE[0]


def test_the_skipped_and_the_absent_promote_nothing_of_the_model(day: Day) -> None:
    dataset, settings, _ = day
    pull_dataset(dataset, settings)
    rows = {row["sample_id"]: row for row in dataset.reviews().to_pylist()}
    skipped, absent = rows[sample_id("uno", 1)], rows[sample_id("uno", 2)]
    assert (skipped["skipped"], skipped["verdict"], skipped["boxes"]) == (True, "none", [])
    assert (absent["skipped"], absent["verdict"], absent["x1"]) == (False, "absent", None)
    assert absent["flags"] in ([], ["model_box_left"])


def test_gold_of_the_day_is_what_was_vouched_for(day: Day) -> None:
    dataset, settings, box = day
    pull_dataset(dataset, settings)
    made = make_gold(dataset)
    rows = {row["sample_id"]: row for row in made.table.to_pylist()}
    assert {key: row["outcome"] for key, row in rows.items()} == {
        sample_id("uno", 0): "corrected",
        sample_id("uno", 2): "absent",
    }
    assert rows[sample_id("uno", 0)]["x2"] == pytest.approx(box[2], abs=1.0)
