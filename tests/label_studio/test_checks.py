"""What the server would take with a 201 and the browser would then submit: refused before."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from review_cases import GROUNDING

from label_studio.checks import prediction_problems, region_problems, task_problems
from label_studio.tasks import prediction, task_data

BOX, POINT = prediction(GROUNDING).result


def changed(region: Any, **changes: object) -> Any:
    """A copy with keys of the region or, after `value_`, of its value changed; None removes."""
    copy = deepcopy(region)
    for key, new in changes.items():
        part = copy["value"] if key.startswith("value_") else copy
        name = key.removeprefix("value_")
        if new is None:
            part.pop(name)
        else:
            part[name] = new
    return copy


def test_good_regions_have_no_problems() -> None:
    assert region_problems(BOX) == []
    assert region_problems(POINT) == []
    assert prediction_problems(prediction(GROUNDING)) == []


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        (changed(BOX, value_x=120.0), "x is 120.0"),
        (changed(BOX, value_x=-5.0), "x is -5.0"),
        (changed(BOX, value_x=math.nan), "x is nan"),
        (changed(BOX, value_width=math.inf), "width is inf"),
        (changed(BOX, value_x="20"), "x is '20'"),
        (changed(BOX, value_x=True), "x is True"),
        (changed(BOX, value_width=0.0), "width is 0"),
        (changed(BOX, value_height=None), "height is None"),
        (changed(BOX, value_x=95.0), "x + width is 105.0"),
        (changed(BOX, value_y=95.0), "y + height is 105.0"),
        (changed(BOX, value_rectanglelabels=["boton_raro"]), "no label 'boton_raro' in 'box'"),
        (changed(BOX, value_rectanglelabels=["Botón"]), "no label 'Botón' in 'box'"),
        (changed(BOX, value_rectanglelabels=["link", "tab"]), "exactly one label"),
        (changed(BOX, value_rectanglelabels=[]), "exactly one label"),
        (changed(BOX, value_puntaje=1), "unknown value 'puntaje'"),
        (changed(BOX, from_name="elemento"), "no control 'elemento'"),
        (changed(BOX, to_name="foto"), "to_name is 'foto', not 'image'"),
        (changed(BOX, type="keypointlabels"), "type is 'keypointlabels', not 'rectanglelabels'"),
        (changed(BOX, original_width=None), "original_width is None"),
        (changed(BOX, original_height=0), "original_height is 0"),
        (changed(BOX, original_width=1280.5), "original_width is 1280.5"),
        (changed(BOX, id=""), "no id"),
        (changed(POINT, value_width=None), "width is None"),
        (changed(POINT, value_keypointlabels=["candidate"]), "no label 'candidate' in 'point'"),
    ],
)
def test_a_bad_region_is_named(region: Any, problem: str) -> None:
    assert any(problem in found for found in region_problems(region)), region_problems(region)


def test_region_ids_are_unique() -> None:
    payload = replace(prediction(GROUNDING), result=(BOX, BOX))
    assert prediction_problems(payload) == ["region ids are not unique"]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("sample_id", "", "'sample_id' is empty"),
        ("image", "", "data has no 'image'"),
        ("instruction", "boto\u0301n", "'instruction' is not NFC or not valid text"),
        ("instruction", "hola \ud83d", "'instruction' is not NFC or not valid text"),
        ("priority", 2.0, "priority is 2.0, not in 0..1"),
        (
            "image",
            "data:image/png;base64,iVBORw0KGgo=",
            "'image' holds the picture itself: lists of such tasks take minutes",
        ),
    ],
)
def test_a_bad_task_is_named(key: str, value: object, problem: str) -> None:
    data: Any = {**task_data(GROUNDING, "/x"), key: value}
    assert problem in task_problems(data)
