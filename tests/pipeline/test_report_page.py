import base64
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from stored_fixtures import Ask, Stored, make_stored, png_bytes, sample_id, stored_stats

from pipeline.config import InputConfig, JobConfig, OutputConfig
from pipeline.dataset import Dataset
from pipeline.report.figures import make_figures
from pipeline.report.gallery import choose, make_cards, reject_lines, thumbnail_uri
from pipeline.report.html import render_page
from pipeline.report.plots import HEIGHT, WIDTH, histogram_bars, tally_lines
from pipeline.report.write import write_report

HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'<script>alert(2)</script>{{ 7*7 }}"


class Page(HTMLParser):
    """Start tags with their attributes, and the text outside style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._raw = tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.text += data

    def of(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        renamed = {key.rstrip("_").replace("_", "-"): value for key, value in wanted.items()}
        return [
            attributes
            for name, attributes in self.tags
            if name == tag and all(attributes.get(k) == v for k, v in renamed.items())
        ]


def page_text(dataset: Dataset, limit: int = 60) -> str:
    cards, hidden = make_cards(dataset, limit)
    figures = make_figures(dataset, stored_stats(dataset), threshold=0.8)
    return render_page(figures, cards, hidden, reject_lines(dataset, 50), "Sus pesos son al azar.")


def page(dataset: Dataset, limit: int = 60) -> Page:
    return Page(page_text(dataset, limit))


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    ask = Ask(HOSTILE, boxes=((1.0, 2.0, 30.0, 40.0),), answers=(HOSTILE,), label=HOSTILE)
    screen = Stored(
        "uno", (ask,), app=HOSTILE, title=HOSTILE, rejects=(("sidecar_invalid", HOSTILE),)
    )
    shown = page(make_stored(tmp_path, [screen]))
    assert len(shown.of("script")) == 1
    assert len(shown.of("style")) == 1
    assert len(shown.of("img")) == 1
    assert not [a for _, a in shown.tags for name in a if name.startswith("on")]
    assert shown.text.count("alert(2)") >= 4
    assert "{{ 7*7 }}" in shown.text


def test_the_page_asks_for_nothing_outside_itself(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, [Stored("uno", (Ask("Guardar"),))])
    text = page_text(dataset)
    shown = Page(text)
    assert not shown.of("link")
    for _, attributes in shown.tags:
        for name in ("src", "href", "srcset", "action", "data"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert not re.search(r"url\(|@import|https?://", text)
    policy = shown.of("meta", http_equiv="Content-Security-Policy")[0]["content"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy


def test_marks_are_drawn_in_original_pixels_in_the_colour_of_their_route(tmp_path: Path) -> None:
    ask = Ask("Guardar", route="accept", point=(100.0, 50.0), boxes=((80.0, 40.0, 120.0, 60.5),))
    shown = page(make_stored(tmp_path, [Stored("uno", (ask,), (2000, 1000))]))
    assert shown.of("svg", class_="overlay")[0]["viewbox"] == "0 0 2000 1000"
    group = shown.of("g", class_="marks line-accept")[0]
    assert group["data-sample"] == sample_id("uno", 0)
    core = shown.of("rect", class_="core")[0]
    assert (core["x"], core["y"], core["width"], core["height"]) == ("80.0", "40.0", "40.0", "20.5")
    spot = shown.of("circle", class_="spot")[0]
    assert (spot["cx"], spot["cy"]) == ("100.0", "50.0")


def test_every_sample_can_be_filtered_and_opened(tmp_path: Path) -> None:
    asks = (Ask("Abrí «Pedidos»", answers=("dijo esto", "y esto")), Ask("Otra", "reject", "absent"))
    shown = page(make_stored(tmp_path, [Stored("uno", asks, app="tienda")]))
    samples = shown.of("details", class_="sample")
    assert [(s["data-route"], s["data-status"]) for s in samples] == [
        ("review", "ok"),
        ("reject", "absent"),
    ]
    assert {box["value"] for box in shown.of("input", name="route")} == {"review", "reject"}
    assert {box["value"] for box in shown.of("input", name="status")} == {"ok", "absent"}
    assert shown.of("option", value="tienda")
    for part in ("Abrí «Pedidos»", "dijo esto", "y esto", "Localizá: Abrí «Pedidos»"):
        assert part in shown.text


def test_the_page_says_its_language_and_that_of_instructions(tmp_path: Path) -> None:
    shown = page(make_stored(tmp_path, [Stored("uno", (Ask("Guardar"),))]))
    assert shown.of("html")[0]["lang"] == "en"
    assert shown.of("span", class_="instruction")[0]["lang"] == "es-AR"


def test_an_empty_dataset_still_makes_a_page(tmp_path: Path) -> None:
    shown = page(make_stored(tmp_path, ()))
    assert "There are no screens in this dataset." in shown.text
    assert "Sus pesos son al azar." in shown.text


def test_a_screen_without_questions_says_so(tmp_path: Path) -> None:
    shown = page(make_stored(tmp_path, [Stored("uno")]))
    assert "No question was asked about this screen." in shown.text


def test_what_is_not_shown_is_said(tmp_path: Path) -> None:
    screens = [Stored(f"p{i}", (Ask(f"Guardar {i}"),), colour=(i, 0, 0)) for i in range(5)]
    shown = page(make_stored(tmp_path, screens), limit=2)
    assert len(shown.of("article")) == 2
    assert "2 screens are shown, 3 more are not" in shown.text


def test_the_choice_is_repeatable_and_takes_applications_in_turn(tmp_path: Path) -> None:
    screens = [
        Stored(f"{app}{i}", (Ask("Guardar"),), app=app, colour=(i, len(app), 0))
        for app, count in (("mucha", 6), ("poca", 1))
        for i in range(count)
    ]
    rows = list(make_stored(tmp_path, screens).screens())
    chosen, different = choose(rows, 3)
    assert sorted(screen.app or "" for screen in chosen) == ["mucha", "mucha", "poca"]
    assert choose(reversed(rows), 3) == (chosen, different)
    assert different == len(rows)


def test_screens_with_questions_come_first(tmp_path: Path) -> None:
    screens = [Stored(f"p{i}", colour=(i, 0, 0)) for i in range(4)]
    screens.append(Stored("preguntada", (Ask("Guardar"),), colour=(99, 0, 0)))
    rows = list(make_stored(tmp_path, screens).screens())
    assert choose(rows, 1)[0][0].member == "preguntada.png"


def test_a_shard_that_is_gone_leaves_a_note_in_place_of_the_picture(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, [Stored("uno", (Ask("Guardar"),))])
    (tmp_path / "capturas.tar").unlink()
    shown = page(dataset)
    assert not shown.of("img")
    assert "capturas.tar" in shown.text
    assert "Guardar" in shown.text


def test_thumbnails_are_small_jpegs_of_the_same_shape() -> None:
    uri = thumbnail_uri(Image.new("RGB", (2560, 1600), (10, 200, 30)))
    head, _, data = uri.partition(",")
    assert head == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as small:
        assert (small.format, small.size) == ("JPEG", (800, 500))


def test_rejects_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    screens = [
        Stored(f"p{i}", rejects=(("sidecar_invalid", f"fallo {i}"),), colour=(i, 0, 0))
        for i in range(4)
    ]
    dataset = make_stored(tmp_path, screens)
    assert [line.detail for line in reject_lines(dataset, 3)] == ["fallo 0", "fallo 1", "fallo 2"]
    assert reject_lines(dataset, 1)[0].where == "capturas.tar: p0.png"


def test_histogram_bars_stack_to_the_full_height_and_stay_inside() -> None:
    bars = histogram_bars({"accept": [0, 3], "review": [2, 1]})
    tallest = [bar for bar in bars if bar.x > WIDTH / 2]
    assert sum(bar.height for bar in tallest) == pytest.approx(HEIGHT)
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in bars)
    assert all(bar.y >= -1e-9 and bar.y + bar.height <= HEIGHT + 1e-9 for bar in bars)
    assert "0.50 to 1.00: 3 accept" in {bar.title for bar in bars}
    assert histogram_bars({"accept": [0, 0]}) == []
    assert histogram_bars({}) == []


def test_tally_lines_are_sorted_and_leave_out_zeros() -> None:
    assert [(line.code, line.share) for line in tally_lines({"a": 1, "b": 4, "c": 0})] == [
        ("b", 1.0),
        ("a", 0.25),
    ]


def test_the_three_reports_lie_in_the_dataset(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, [Stored("uno", (Ask("Guardar"),))])
    config = JobConfig(
        input=InputConfig(shards=("x",)), output=OutputConfig(dataset=str(tmp_path / "dataset"))
    )
    report = write_report(dataset, stored_stats(dataset), config)
    assert Path(report.json_uri) == tmp_path / "dataset/report.json"
    assert "<!doctype html>" in Path(report.html_uri).read_text(encoding="utf-8")
    assert "Screens" in Path(report.text_uri).read_text(encoding="utf-8")
    assert report.figures.counts.screens == 1


def test_very_long_answers_are_cut_on_the_page_and_say_so(tmp_path: Path) -> None:
    long = Ask("Guardar", answers=("x" * 5000,))
    assert (
        "... and 1,000 characters more" in page(make_stored(tmp_path, [Stored("a", (long,))])).text
    )


def test_two_members_with_the_same_pixels_are_one_card(tmp_path: Path) -> None:
    data = png_bytes((50, 50), (1, 2, 3))
    twins = [Stored(name, (), (50, 50), data=data) for name in ("a", "b")]
    cards, hidden = make_cards(make_stored(tmp_path, twins))
    assert (len(cards), hidden) == (1, 0)
    assert replace(cards[0], thumbnail="").problem == ""
