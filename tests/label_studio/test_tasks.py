"""Payloads, literally: percent of the upright image, one prediction, ids that never change."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from review_cases import GROUNDING

from label_studio.checks import prediction_problems, task_problems
from label_studio.tasks import Region, prediction, task_data
from label_studio.words import Variant
from schemas.codes import QueryKind, Role, SampleStatus
from schemas.geometry import Box, FrameKind, Point, SeenImage, Size, point_from_frame
from schemas.records import Item


def values(regions: tuple[Region, ...]) -> list[dict[str, object]]:
    return [dict(region["value"]) for region in regions]


def test_a_box_and_a_point_are_one_prediction_in_percent() -> None:
    payload = prediction(GROUNDING)
    assert payload.model_version == "pantalla"
    assert payload.result == (
        {
            "id": payload.result[0]["id"],
            "from_name": "box",
            "to_name": "image",
            "type": "rectanglelabels",
            "original_width": 1280,
            "original_height": 800,
            "image_rotation": 0,
            "value": {
                "x": 20.0,
                "y": 20.0,
                "width": 10.0,
                "height": 10.0,
                "rotation": 0.0,
                "rectanglelabels": ["button"],
            },
        },
        {
            "id": payload.result[1]["id"],
            "from_name": "point",
            "to_name": "image",
            "type": "keypointlabels",
            "original_width": 1280,
            "original_height": 800,
            "image_rotation": 0,
            "value": {"x": 25.0, "y": 25.0, "width": 0.45, "keypointlabels": ["click"]},
        },
    )


def test_region_ids_depend_on_the_sample_alone() -> None:
    ids = [region["id"] for region in prediction(GROUNDING).result]
    assert ids == [region["id"] for region in prediction(GROUNDING).result]
    other = prediction(replace(GROUNDING, sample_id="muestra-2"))
    assert set(ids).isdisjoint(region["id"] for region in other.result)


@pytest.mark.parametrize(
    ("box", "percent"),
    [
        (Box(0, 0, 1280, 800), (0.0, 0.0, 100.0, 100.0)),
        (Box(-3, -2, 640, 400), (0.0, 0.0, 50.0, 50.0)),
        (Box(1152, 720, 1281.5, 800.4), (90.0, 90.0, 10.0, 10.0)),
    ],
)
def test_a_box_over_the_edge_is_cut_there(
    box: Box, percent: tuple[float, float, float, float]
) -> None:
    sample = replace(GROUNDING, items=(Item(box=box),))
    (value,) = values(prediction(sample).result)
    assert (value["x"], value["y"], value["width"], value["height"]) == percent
    assert value["rectanglelabels"] == ["element"]


def test_a_box_outside_the_image_is_not_drawn() -> None:
    sample = replace(GROUNDING, items=(Item(box=Box(1300, 10, 1400, 20)),))
    assert prediction(sample).result == ()


def test_several_elements_keep_their_order_and_class() -> None:
    sample = replace(
        GROUNDING,
        kind=QueryKind.LOCALIZATION,
        items=(
            Item(box=Box(0, 0, 128, 80), role=Role.LINK),
            Item(box=Box(128, 0, 256, 80), role=None),
            Item(box=Box(256, 0, 384, 80), role=Role.TEXTBOX),
        ),
        candidates=(Item(point=Point(9, 9)),),
    )
    payload = prediction(sample)
    assert [region["value"]["rectanglelabels"] for region in payload.result] == [
        ["link"],
        ["element"],
        ["textbox"],
    ]
    assert len({region["id"] for region in payload.result}) == 3
    answer = task_data(sample, "/x")["answer"]
    assert answer == "Respuesta del modelo: 3 elementos marcados en la captura."
    one = replace(sample, items=sample.items[:1])
    answer = task_data(one, "/x")["answer"]
    assert answer == "Respuesta del modelo: un elemento marcado en la captura."


def test_a_text_belongs_to_its_box() -> None:
    items = (
        Item(box=Box(0, 0, 128, 80), role=Role.BUTTON, label="  Guardar  cambios "),
        Item(box=Box(128, 0, 256, 80), role=Role.LINK),
    )
    sample = replace(GROUNDING, kind=QueryKind.LOCALIZATION, items=items)
    box, text, other = prediction(sample).result
    assert (text["from_name"], text["type"], text["id"]) == ("text", "textarea", box["id"])
    assert text["value"]["text"] == ["Guardar cambios"]
    assert other["id"] != box["id"]
    assert prediction_problems(prediction(sample)) == []
    assert [
        r["from_name"] for r in prediction(replace(sample, kind=QueryKind.GROUNDING)).result
    ] == [
        "box",
        "box",
    ]


def test_elements_before_a_cut_are_drawn_and_said_to_be_cut() -> None:
    sample = replace(
        GROUNDING,
        kind=QueryKind.LOCALIZATION,
        status=SampleStatus.TRUNCATED,
        items=(Item(box=Box(0, 0, 128, 80)), Item(box=Box(128, 0, 256, 80))),
    )
    data = task_data(sample, "/x")
    assert len(prediction(sample).result) == 2
    assert data["answer"] == (
        "Respuesta del modelo: se cortó antes de terminar; 2 elementos marcados en la captura."
    )
    assert data["question"] == "¿Están marcados todos los elementos, cada uno con su clase?"


@pytest.mark.parametrize(
    ("variant", "asked"),
    [
        (Variant.NEUTRAL, "Márquelo."),
        (Variant.ARGENTINA, "Marcalo."),
        (Variant.MEXICO, "Márquelo."),
        (Variant.SPAIN, "Márcalo."),
    ],
)
def test_the_question_speaks_as_the_guide_does(variant: Variant, asked: str) -> None:
    sample = replace(GROUNDING, status=SampleStatus.NO_ANSWER, items=())
    assert task_data(sample, "/x", variant)["question"].endswith(f"la instrucción? {asked}")


def test_among_all_elements_a_box_is_not_covered_by_its_point() -> None:
    items = (Item(point=Point(64, 40), box=Box(0, 0, 128, 80)), Item(point=Point(300, 300)))
    sample = replace(GROUNDING, kind=QueryKind.LOCALIZATION, items=items)
    assert [region["from_name"] for region in prediction(sample).result] == ["box", "point"]
    alone = replace(GROUNDING, items=items[:1])
    assert [region["from_name"] for region in prediction(alone).result] == ["box", "point"]


@pytest.mark.parametrize(
    ("kind", "status", "question", "answer"),
    [
        (
            QueryKind.GROUNDING,
            SampleStatus.ABSENT,
            "¿Es cierto que lo que pide la instrucción no está en la pantalla?",
            "Respuesta del modelo: no existe en la pantalla.",
        ),
        (
            QueryKind.GROUNDING,
            SampleStatus.UNPARSEABLE,
            "¿Dónde está el elemento que pide la instrucción? Márquelo.",
            "Respuesta del modelo: ninguna que se pueda usar.",
        ),
        (
            QueryKind.LOCALIZATION,
            SampleStatus.ABSENT,
            "¿Qué elementos hay? Márquelos, cada uno con su clase.",
            "Respuesta del modelo: no hay ningún elemento.",
        ),
        (
            QueryKind.LOCALIZATION,
            SampleStatus.TRUNCATED,
            "¿Qué elementos hay? Márquelos, cada uno con su clase.",
            "Respuesta del modelo: ninguna que se pueda usar.",
        ),
    ],
)
def test_a_reviewer_is_never_asked_about_a_mark_that_is_not_there(
    kind: QueryKind, status: SampleStatus, question: str, answer: str
) -> None:
    data = task_data(replace(GROUNDING, kind=kind, status=status, items=()), "/x")
    assert (data["question"], data["answer"]) == (question, answer)


def test_only_answers_that_look_different_are_drawn_as_others() -> None:
    sample = replace(
        GROUNDING,
        candidates=(
            Item(point=Point(320, 200)),
            Item(point=Point(380, 238)),
            Item(point=Point(1000, 600)),
            Item(point=Point(1010, 605)),
            Item(box=Box(100, 600, 140, 620)),
            Item(point=Point(5000, 10)),
        ),
    )
    others = [r for r in prediction(sample).result if r["from_name"] == "candidate"]
    assert [(r["value"]["x"], r["value"]["y"]) for r in others] == [(78.125, 75.0)]
    (box,) = [r for r in prediction(sample).result if r["from_name"] == "candidate_box"]
    assert (box["value"]["x"], box["value"]["y"], box["value"]["width"]) == (7.8125, 75.0, 3.125)
    assert box["value"]["rectanglelabels"] == others[0]["value"]["keypointlabels"] == ["candidate"]
    assert all(r["readonly"] for r in (*others, box))
    assert prediction_problems(prediction(sample)) == []


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (SampleStatus.ABSENT, "Respuesta del modelo: no existe en la pantalla."),
        (SampleStatus.NO_ANSWER, "Respuesta del modelo: ninguna que se pueda usar."),
        (SampleStatus.TRUNCATED, "Respuesta del modelo: ninguna que se pueda usar."),
    ],
)
def test_an_answer_without_a_place_is_said_in_words(status: SampleStatus, answer: str) -> None:
    sample = replace(GROUNDING, status=status, items=())
    assert task_data(sample, "/x")["answer"] == answer
    assert prediction(sample).result == ()
    assert prediction_problems(prediction(sample)) == []


def test_the_data_carries_the_key_the_model_and_composed_text() -> None:
    sample = replace(
        GROUNDING,
        instruction="Abrir la configuracio\u0301n",
        app="wagtail",
        priority=0.1234567,
    )
    data = task_data(sample, "/data/upload/2/x.png")
    assert data == {
        "sample_id": "muestra-1",
        "screen_id": "a" * 64,
        "image": "/data/upload/2/x.png",
        "question": "¿Está bien marcado el elemento que pide la instrucción?",
        "instruction": "Abrir la configuración",
        "answer": "Respuesta del modelo: el lugar marcado en la captura.",
        "kind": "grounding",
        "status": "ok",
        "priority": 0.123457,
        "model": "nano abc123",
        "app": "wagtail",
        "locale": "",
    }
    assert not {"route", "probability", "score"} & data.keys()
    assert task_problems(data) == []


sides = st.integers(1, 8000)
corners = st.floats(-100, 9000, allow_nan=False)


@given(width=sides, height=sides, xs=st.tuples(corners, corners), ys=st.tuples(corners, corners))
def test_any_box_becomes_a_region_that_passes_the_checks_or_none(
    width: int, height: int, xs: tuple[float, float], ys: tuple[float, float]
) -> None:
    if xs[0] == xs[1] or ys[0] == ys[1]:
        return
    box = Box(min(xs), min(ys), max(xs), max(ys))
    sample = replace(GROUNDING, size=Size(width, height), items=(Item(box=box),))
    payload = prediction(sample)
    assert prediction_problems(payload) == []
    overlaps = box.x1 < width and box.x2 > 0 and box.y1 < height and box.y2 > 0
    assert len(payload.result) == int(overlaps)


@given(x=st.integers(0, 3840), y=st.integers(0, 2160))
def test_percent_goes_back_to_the_same_pixel(x: int, y: int) -> None:
    sample = replace(GROUNDING, size=Size(3840, 2160), items=(Item(point=Point(x, y)),))
    (value,) = values(prediction(sample).result)
    image = SeenImage.unchanged(Size(3840, 2160))
    back = point_from_frame(
        float(str(value["x"])), float(str(value["y"])), FrameKind.PERCENT, image
    )
    assert (round(back.x), round(back.y)) == (x, y)
