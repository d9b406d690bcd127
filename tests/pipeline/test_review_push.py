"""From committed rows to tasks: who is reviewed, in which order, and what the command says."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from fake_studio import TOKEN, FakeState, fake_studio
from job_fixtures import job, oracle, scripted, write_tar
from PIL import Image
from stored_fixtures import Ask, Stored, make_stored, sample_id

from pipeline.cli.app import main
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset, open_dataset
from pipeline.pictures import picture_reader
from pipeline.push import push_dataset
from pipeline.review_samples import (
    in_order,
    informativeness,
    review_samples,
    samples_to_review,
)
from pipeline.run import run_job
from schemas.codes import QueryKind, Role, Route, SampleStatus
from schemas.errors import ConfigError
from schemas.geometry import Box, Point, Size
from schemas.ids import sha256_hex
from schemas.records import Item
from schemas.review import ReviewSample

SCREENS = (
    Stored(
        "uno",
        (
            Ask("Abrir el menú", "review", point=(30, 40), probability=0.6),
            Ask("Buscar", "accept", point=(10, 10), probability=0.9),
            Ask("Imprimir", "audit", point=(50, 60), probability=0.95),
        ),
    ),
    Stored(
        "dos",
        (
            Ask("Salir", "review", status="absent", probability=0.2),
            Ask("Nada", "reject", status="unparseable", probability=0.0),
        ),
        app=None,
        colour=(10, 20, 30),
    ),
    Stored(
        "tres",
        (
            Ask(
                "Todos los elementos",
                "review",
                boxes=((0, 0, 50, 20), (60, 0, 90, 20)),
                kind="localization",
                probability=0.5,
            ),
        ),
        colour=(90, 20, 30),
    ),
)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return make_stored(tmp_path, SCREENS)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[str, FakeState]]:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fake_studio() as running:
        yield running


def test_review_and_audit_go_to_people_most_informative_first(dataset: Dataset) -> None:
    samples = samples_to_review(dataset)
    doubts = [sample.instruction for sample in samples if sample.instruction != "Imprimir"]
    assert doubts == ["Todos los elementos", "Abrir el menú", "Salir"]
    assert len(samples) == 4
    order = [sample.priority for sample in samples]
    assert order == sorted(order, reverse=True)
    assert samples == review_samples(
        dataset.table("annotations"), {s.screen_id: s.app for s in dataset.screens()}
    )


def routed(count: int, route: Route, probability: float) -> list[tuple[ReviewSample, Route]]:
    """Samples of one route with different ids and nearly the same certainty."""
    base = ReviewSample(
        sample_id="",
        screen_id="a" * 64,
        kind=QueryKind.GROUNDING,
        instruction="Guardar",
        status=SampleStatus.OK,
        items=(Item(point=Point(1, 1)),),
        candidates=(),
        size=Size(10, 10),
        probability=probability,
        model="m",
    )
    return [
        (
            replace(
                base,
                sample_id=sha256_hex(f"{route}{n}".encode())[:32],
                probability=probability * (n + 1) / count,
            ),
            route,
        )
        for n in range(count)
    ]


def test_nothing_tells_an_audited_sample_from_one_in_doubt() -> None:
    doubts, audits = routed(300, Route.REVIEW, 0.79), routed(100, Route.AUDIT, 0.97)
    order = in_order(audits + doubts)
    audited = {sample.sample_id for sample, _ in audits}
    places = [n for n, sample in enumerate(order) if sample.sample_id in audited]
    thirds = [
        sum(n * len(order) // 3 <= place < (n + 1) * len(order) // 3 for place in places)
        for n in range(3)
    ]
    assert min(thirds) > 20, "the audit is spread through the queue"
    seen = {informativeness(sample) for sample, _ in doubts}
    assert {sample.priority for sample in order} <= seen, "an audited one has no value of its own"
    again = in_order(doubts[::-1] + audits)
    assert [sample.sample_id for sample in order] == [sample.sample_id for sample in again]


def test_answers_that_cannot_be_used_come_last() -> None:
    (sample, _), *_ = routed(1, Route.REVIEW, 0.5)
    assert informativeness(sample) == 1.0
    assert informativeness(replace(sample, probability=0.1)) == pytest.approx(0.2)
    assert informativeness(replace(sample, status=SampleStatus.UNPARSEABLE)) == 0.0


def test_only_answers_outside_the_winning_region_are_shown_as_others(tmp_path: Path) -> None:
    ask = Ask("Abrir", "review", point=(100, 100), answers=("a", "b", "c"))
    near = make_stored(tmp_path, [Stored("cerca", (ask,))])
    (sample,) = samples_to_review(near)
    assert sample.candidates == (), "9 px apart, all in one region"
    table = near.table("annotations")
    row = table.to_pylist()[0]
    row["candidates"][2].update(x=300.0, y=20.0)
    moved = pa.Table.from_pylist([row], schema=table.schema)
    (sample,) = review_samples(moved)
    assert [item.point for item in sample.candidates] == [Point(300, 20)]
    moved = pa.Table.from_pylist(
        [{**row, "status": "absent", "x": None, "y": None}], schema=table.schema
    )
    (sample,) = review_samples(moved)
    assert len(sample.candidates) == 3, "where no place won, each is another answer"


def test_a_sample_keeps_what_a_reviewer_needs(dataset: Dataset) -> None:
    samples = {sample.instruction: sample for sample in samples_to_review(dataset)}
    absent, elements, menu = (
        samples[text] for text in ("Salir", "Todos los elementos", "Abrir el menú")
    )
    assert (absent.status, absent.items, absent.app) == (SampleStatus.ABSENT, (), None)
    assert menu.sample_id == sample_id("uno", 0)
    assert menu.kind is QueryKind.GROUNDING
    assert [item.point for item in menu.items] == [Point(30, 40)]
    assert (menu.size, menu.model, menu.app) == (Size(320, 240), "prueba r1, nano 1", "prueba")
    assert menu.locale == "es-AR"
    assert elements.kind is QueryKind.LOCALIZATION
    assert elements.items == (
        Item(box=Box(0, 0, 50, 20), role=Role.BUTTON),
        Item(box=Box(60, 0, 90, 20), role=Role.BUTTON),
    )


def test_a_dataset_is_pushed_once_however_often(
    dataset: Dataset, server: tuple[str, FakeState]
) -> None:
    url, state = server
    settings = LabelStudioConfig(url=url)
    first = push_dataset(dataset, settings)
    again = push_dataset(dataset, settings)
    assert (first.tasks_new, first.tasks_present, first.pending, first.note) == (4, 0, 0, "")
    assert (again.tasks_new, again.tasks_present, again.pending) == (0, 4, 0)
    assert first.project == f"{url}/projects/1/data"
    assert state.tasks[0]["data"]["instruction"] == "Todos los elementos"
    assert sum("guia-" not in file["file"] for file in state.files) == 3


def test_the_reviewer_gets_the_original_bytes(dataset: Dataset) -> None:
    read = picture_reader(dataset)
    assert read(sha256_hex(SCREENS[0].bytes)) == SCREENS[0].bytes


def test_a_picture_that_browsers_do_not_show_becomes_a_png(tmp_path: Path) -> None:
    sink = io.BytesIO()
    Image.new("RGB", (320, 240), (1, 2, 3)).save(sink, "BMP")
    stored = Stored("mapa", (Ask("Abrir", "review", point=(1, 1)),), data=sink.getvalue())
    data = picture_reader(make_stored(tmp_path, [stored]))(sha256_hex(stored.bytes))
    image = Image.open(io.BytesIO(data))
    assert (image.format, image.size, image.getpixel((5, 5))) == ("PNG", (320, 240), (1, 2, 3))


def turned_picture(image_format: str) -> bytes:
    """A picture whose upright form is 60x120 with a red left half."""
    upright = Image.new("RGB", (60, 120), "white")
    upright.paste("red", (0, 0, 30, 120))
    exif = Image.Exif()
    exif[0x0112] = 6
    sink = io.BytesIO()
    options = {"quality": 95} if image_format == "JPEG" else {"lossless": True}
    upright.transpose(Image.Transpose.ROTATE_90).save(sink, image_format, exif=exif, **options)
    return sink.getvalue()


def moving_picture() -> bytes:
    sink = io.BytesIO()
    frames = [Image.new("RGB", (60, 120), colour) for colour in ("red", "blue")]
    frames[0].save(sink, "GIF", save_all=True, append_images=frames[1:])
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("foto.webp", turned_picture("WEBP")),
        ("foto.png", turned_picture("PNG")),
        ("anim.gif", moving_picture()),
    ],
)
def test_a_picture_that_browsers_show_otherwise_becomes_an_upright_still(
    tmp_path: Path, name: str, data: bytes
) -> None:
    config = job(tmp_path, write_tar(tmp_path / "a.tar", {name: data}))
    run_job(config, engine_factory=scripted(oracle([])))
    shown = picture_reader(open_dataset(config.output.dataset))(sha256_hex(data))
    image = Image.open(io.BytesIO(shown))
    assert (image.format, image.size, getattr(image, "n_frames", 1)) == ("PNG", (60, 120), 1)
    assert image.getpixel((5, 100)) == (255, 0, 0)


def test_a_turned_jpeg_is_turned_by_browsers_too_and_stays_as_it_is(tmp_path: Path) -> None:
    data = turned_picture("JPEG")
    config = job(tmp_path, write_tar(tmp_path / "a.tar", {"foto.jpg": data}))
    run_job(config, engine_factory=scripted(oracle([])))
    assert picture_reader(open_dataset(config.output.dataset))(sha256_hex(data)) == data


def test_without_a_server_the_push_says_what_is_missing(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match=r"label_studio\.url is not set"):
        push_dataset(dataset, LabelStudioConfig())


def test_the_command_pushes_and_counts(
    dataset: Dataset, server: tuple[str, FakeState], capsys: pytest.CaptureFixture[str]
) -> None:
    url, state = server
    assert command(["push", dataset.uri, "--url", url]) == 0
    assert capsys.readouterr().out == (
        "New tasks          4\n"
        "There already      0\n"
        "Not there yet      0\n"
        f"Project            {url}/projects/1/data\n"
    )
    assert state.projects[1]["title"] == "Pantalla: revisión"


def test_the_command_reads_the_job_file(
    dataset: Dataset, server: tuple[str, FakeState], tmp_path: Path
) -> None:
    url, state = server
    job = tmp_path / "trabajo.toml"
    job.write_text(
        f"[input]\nshards = ['{tmp_path}/capturas.tar']\n"
        f"[output]\ndataset = '{dataset.uri}'\n"
        f"[label_studio]\nurl = '{url}'\nproject = 'Otro título'\n",
        encoding="utf-8",
    )
    assert command(["push", "--config", str(job)]) == 0
    assert state.projects[1]["title"] == "Otro título"


def test_the_command_ends_with_1_when_something_waits(
    dataset: Dataset, server: tuple[str, FakeState], capsys: pytest.CaptureFixture[str]
) -> None:
    url, state = server
    state.poison = {sample.sample_id for sample in samples_to_review(dataset)}
    assert command(["push", dataset.uri, "--url", url]) == 1
    assert "4 not pushed: refused" in capsys.readouterr().out


def test_what_is_over_the_budget_waits_and_is_said(
    dataset: Dataset, server: tuple[str, FakeState]
) -> None:
    url, state = server
    outcome = push_dataset(dataset, LabelStudioConfig(url=url, budget=3))
    assert (outcome.tasks_new, outcome.pending) == (3, 1)
    assert outcome.note == "1 wait: label_studio.budget = 3 tasks are open"
    assert state.tasks[0]["data"]["instruction"] == "Todos los elementos"


def test_with_masks_a_screen_that_does_not_say_what_to_hide_is_not_pushed(
    dataset: Dataset, server: tuple[str, FakeState]
) -> None:
    url, state = server
    outcome = push_dataset(dataset, LabelStudioConfig(url=url, masks="sidecar"))
    assert (outcome.tasks_new, outcome.pending) == (0, 4)
    assert outcome.note.startswith("4 not pushed: masks; for example ")
    assert not [file for file in state.files if "guia-" not in file["file"]]


def test_a_bad_option_is_named(
    dataset: Dataset, server: tuple[str, FakeState], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["push", dataset.uri, "--url", server[0], "--project", "ab"]) == 2
    assert "label_studio.project = 'ab'" in capsys.readouterr().err
    assert command(["push", dataset.uri, "--url", "127.0.0.1:8080"]) == 2
    assert "label_studio.url = '127.0.0.1:8080'" in capsys.readouterr().err


def test_nothing_secret_is_printed_when_the_login_fails(
    dataset: Dataset, server: tuple[str, FakeState], capsys: pytest.CaptureFixture[str]
) -> None:
    url, state = server
    state.fail["whoami"] = [(401, {"detail": "Invalid token."})]
    assert command(["push", dataset.uri, "--url", url]) == 1
    said = capsys.readouterr()
    assert "the token was not accepted (401)" in said.err
    assert TOKEN not in json.dumps([said.out, said.err])
    assert "sessionid" not in said.err


def command(words: list[str]) -> int:
    """Run the command line and return its exit code."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    return int(caught.value.code or 0)
