"""From committed rows to tasks: who is reviewed, in which order, and what the command says."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_studio import TOKEN, FakeState, fake_studio
from job_fixtures import job, oracle, scripted, write_tar
from PIL import Image
from stored_fixtures import Ask, Stored, make_stored, sample_id

from pipeline.cli.app import main
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset, open_dataset
from pipeline.push import picture_reader, push_dataset
from pipeline.review_samples import review_samples, samples_to_review
from pipeline.run import run_job
from schemas.codes import QueryKind, Role, SampleStatus
from schemas.errors import ConfigError
from schemas.geometry import Box, Point, Size
from schemas.ids import sha256_hex
from schemas.records import Item

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


def test_review_and_audit_go_to_people_most_uncertain_first(dataset: Dataset) -> None:
    samples = samples_to_review(dataset)
    assert [sample.instruction for sample in samples] == [
        "Salir",
        "Todos los elementos",
        "Abrir el menú",
        "Imprimir",
    ]
    assert samples == review_samples(
        dataset.table("annotations"), {s.screen_id: s.app for s in dataset.screens()}
    )


def test_a_sample_keeps_what_a_reviewer_needs(dataset: Dataset) -> None:
    absent, elements, menu, _ = samples_to_review(dataset)
    assert (absent.status, absent.items, absent.app) == (SampleStatus.ABSENT, (), None)
    assert menu.sample_id == sample_id("uno", 0)
    assert menu.kind is QueryKind.GROUNDING
    assert [item.point for item in menu.items] == [Point(30, 40)]
    assert (menu.size, menu.model, menu.app) == (Size(320, 240), "prueba r1", "prueba")
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
    assert state.tasks[0]["data"]["instruction"] == "Salir"
    assert len(state.files) == 3


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
    state.fail["import"] = [(400, {"detail": "no"})]
    assert command(["push", dataset.uri, "--url", url]) == 1
    assert "4 not pushed: refused" in capsys.readouterr().out


def test_a_bad_option_is_named(
    dataset: Dataset, server: tuple[str, FakeState], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["push", dataset.uri, "--url", server[0], "--project", "ab"]) == 2
    assert "label_studio.project = 'ab'" in capsys.readouterr().err


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
