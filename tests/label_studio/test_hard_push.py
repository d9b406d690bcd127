"""Faults that people have met in public when they push to Label Studio (group 5)."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from fake_studio import FakeState
from review_cases import GROUNDING, image_of, many

from label_studio.checks import prediction_problems, region_problems
from label_studio.client import ServerSettings
from label_studio.push import push_samples
from label_studio.tasks import Region, prediction, task_data
from schemas.codes import QueryKind, Role
from schemas.errors import LabelStudioError
from schemas.geometry import Box, Point, Size
from schemas.records import Item

Fake = tuple[ServerSettings, FakeState]


def box_values(size: Size, box: Box) -> dict[str, float]:
    sample = replace(GROUNDING, size=size, items=(Item(box=box),))
    (region,) = prediction(sample).result
    assert prediction_problems(prediction(sample)) == []
    return {key: region["value"][key] for key in ("x", "y", "width", "height")}  # type: ignore[literal-required]


def test_pixels_become_percent_of_a_large_screen() -> None:
    value = box_values(Size(3072, 1728), Box(2691, 218, 2991, 318))
    assert (round(value["x"], 1), round(value["y"], 1)) == (87.6, 12.6)


@pytest.mark.parametrize(
    ("size", "box"),
    [
        (Size(1000, 1000), Box(980, 10, 1030, 20)),
        (Size(1920, 1080), Box(1828, 10, 1920.0000001, 1080.00002)),
        (Size(7, 3), Box(1 / 3, 1 / 7, 7 + 1e-9, 3 + 1e-9)),
    ],
)
def test_a_box_at_the_edge_ends_there(size: Size, box: Box) -> None:
    value = box_values(size, box)
    assert value["x"] + value["width"] <= 100.0
    assert value["y"] + value["height"] <= 100.0


def test_a_box_is_anchored_at_its_corner_not_its_centre() -> None:
    value = box_values(Size(1000, 1000), Box(400, 450, 600, 550))
    assert value == pytest.approx({"x": 40.0, "y": 45.0, "width": 20.0, "height": 10.0})


def test_three_boxes_are_one_prediction_with_three_regions(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    items = tuple(Item(box=Box(n, 0, n + 50, 50), role=Role.LINK) for n in (0, 100, 200))
    sample = replace(many(1)[0], kind=QueryKind.LOCALIZATION, items=items)
    push_samples([sample], image_of, server, lock_dir=tmp_path)
    (row,) = state.predictions
    assert len({region["id"] for region in row["result"]}) == len(row["result"]) == 3


def test_a_label_the_interface_does_not_know_is_named_before_it_is_sent() -> None:
    (box, _) = prediction(GROUNDING).result
    icon = Region(**{**box, "value": {**box["value"], "rectanglelabels": ["icono"]}})  # type: ignore[typeddict-item]
    assert region_problems(icon) == ["the interface has no label 'icono' in 'box'"]
    tag = Region(**{**box, "from_name": "tag"})  # type: ignore[typeddict-item]
    assert "the interface has no control 'tag'" in region_problems(tag)


KINDS = {
    "box": {"rectanglelabels", "x", "y", "width", "height", "rotation"},
    "point": {"keypointlabels", "x", "y", "width"},
    "candidate": {"keypointlabels", "x", "y", "width"},
    "candidate_box": {"rectanglelabels", "x", "y", "width", "height", "rotation"},
    "text": {"text", "x", "y", "width", "height", "rotation"},
}


def test_every_kind_of_region_has_the_keys_of_its_kind() -> None:
    far = (Item(point=Point(900, 700)), Item(box=Box(900, 10, 1000, 60)))
    regions = list(prediction(replace(GROUNDING, candidates=far)).result)
    named = (Item(box=Box(0, 0, 50, 50), label="Guardar"),)
    elements = replace(GROUNDING, kind=QueryKind.LOCALIZATION, items=named)
    regions += prediction(elements).result
    assert {region["from_name"] for region in regions} == KINDS.keys()
    for region in regions:
        assert region["value"].keys() == KINDS[region["from_name"]]
        label_key = region["type"] if region["type"] != "textarea" else "text"
        assert label_key in region["value"]
        assert (region["original_width"], region["original_height"]) == (1280, 800)


@pytest.mark.parametrize("address", ["s3://cubo/Año 2026/Captura 1+1 (ñ).png", "/x?a=%2F%2B"])
def test_an_address_is_sent_as_it_is_and_is_not_the_key(address: str) -> None:
    data = task_data(GROUNDING, address)
    assert data["image"] == address
    assert address not in data["sample_id"]


def test_texts_of_either_unicode_form_are_sent_composed(fake: Fake, tmp_path: Path) -> None:
    server, state = fake
    text = unicodedata.normalize("NFD", "Botón «Añadir»")
    items = (Item(box=Box(0, 0, 50, 50), label=text),)
    sample = replace(many(1)[0], kind=QueryKind.LOCALIZATION, instruction=text, items=items)
    push_samples([sample], image_of, server, lock_dir=tmp_path)
    sent = json.dumps([state.tasks, state.predictions], ensure_ascii=False)
    assert unicodedata.is_normalized("NFC", sent)
    assert sent.count("Botón «Añadir»") == 2


def test_access_that_ends_in_mid_push_is_renewed_and_the_call_repeated_once(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, state = fake
    personal = jwt.encode({"exp": 4_000_000_000, "token_type": "refresh"}, "x" * 32)
    monkeypatch.setenv("TOKEN_DE_PRUEBA", personal)
    state.access_calls = 2
    report = push_samples(many(150), image_of, server, lock_dir=tmp_path)
    assert (report.added, report.complete, len(state.tasks)) == (150, True, 150)
    assert len(state.predictions) == 150
    state.access_calls = 0
    with pytest.raises(LabelStudioError, match=r"the token was not accepted \(401\)") as caught:
        push_samples(many(1), image_of, server, lock_dir=tmp_path)
    assert personal not in str(caught.value)
    assert not [token for token in state.access if token and token in str(caught.value)]


def test_the_model_is_named_in_the_data_and_the_version_never_changes(
    fake: Fake, tmp_path: Path
) -> None:
    server, state = fake
    first, second = many(2)
    push_samples([first], image_of, server, lock_dir=tmp_path)
    other = replace(second, model="nano def456, nano 2")
    push_samples([first, other], image_of, server, lock_dir=tmp_path)
    assert [task["data"]["model"] for task in state.tasks] == ["nano abc123", other.model]
    assert [row["model_version"] for row in state.predictions] == ["pantalla", "pantalla"]
