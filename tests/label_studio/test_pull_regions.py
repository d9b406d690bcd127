"""Regions of a reviewer back to original pixels; the ids are those of the hard inputs."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from review_cases import GROUNDING

from label_studio.interface import BOX, CANDIDATE, POINT, TEXT
from label_studio.pull_regions import read_regions
from label_studio.tasks import prediction
from schemas.codes import Role
from schemas.geometry import Box, Point, Size
from schemas.records import Item
from schemas.reviews import ReviewFlag

SIZE = Size(1000, 500)


def box(**value: Any) -> dict[str, Any]:
    known = {"rectanglelabels": ["button"], **value}
    return {"id": "r1", "from_name": BOX, "type": "rectanglelabels", "value": known}


def point(x: Any, y: Any) -> dict[str, Any]:
    value = {"x": x, "y": y, "width": 0.45, "keypointlabels": ["click"]}
    return {"id": "p1", "from_name": POINT, "type": "keypointlabels", "value": value}


@given(st.data())
def test_pixels_survive_the_way_to_percent_and_back(data: st.DataObject) -> None:
    width = data.draw(st.integers(2, 7680))
    height = data.draw(st.integers(2, 4320))
    halves = st.integers(0, 2 * width - 1), st.integers(0, 2 * height - 1)
    x1, y1 = (data.draw(side) / 2 for side in halves)
    x2 = data.draw(st.integers(int(2 * x1) + 1, 2 * width)) / 2
    y2 = data.draw(st.integers(int(2 * y1) + 1, 2 * height)) / 2
    item = Item(point=Point(x1, y2), box=Box(x1, y1, x2, y2), role=Role.LINK)
    sample = GROUNDING.__class__(
        **{
            **{name: getattr(GROUNDING, name) for name in GROUNDING.__slots__},
            "items": (item,),
            "size": Size(width, height),
        }
    )
    drawn = read_regions([dict(region) for region in prediction(sample).result], sample.size)
    assert [reviewed.box for reviewed in drawn.boxes] == [item.box]
    assert [spot.point for spot in drawn.points] == [item.point]
    assert drawn.boxes[0].role is Role.LINK
    assert (drawn.flags, drawn.foreign) == (set(), 0)


def test_b097_a_turned_box_becomes_its_hull_in_pixels_and_keeps_its_angle() -> None:
    drawn = read_regions([box(x=20, y=20, width=30, height=20, rotation=90)], SIZE)
    (found,) = drawn.boxes
    assert found.box.corners == pytest.approx((100, 100, 200, 400))
    assert found.rotation == 90
    assert drawn.flags == {ReviewFlag.ROTATED}


@given(
    st.floats(20, 60), st.floats(20, 60), st.floats(1, 20), st.floats(1, 20), st.floats(-720, 720)
)
def test_the_hull_of_a_turned_box_holds_its_corners(
    x: float, y: float, width: float, height: float, angle: float
) -> None:
    drawn = read_regions([box(x=x, y=y, width=width, height=height, rotation=angle)], SIZE)
    if not drawn.boxes:
        assert ReviewFlag.OUTSIDE_IMAGE in drawn.flags
        return
    radians = math.radians(angle)
    left, top = x * 10, y * 5
    across, down = width * 10, height * 5
    hull = drawn.boxes[0].box
    for a, b in ((0, 0), (across, 0), (across, down), (0, down)):
        corner_x = left + a * math.cos(radians) - b * math.sin(radians)
        corner_y = top + a * math.sin(radians) + b * math.cos(radians)
        assert hull.x1 - 1e-5 <= min(max(corner_x, 0), 1000) <= hull.x2 + 1e-5
        assert hull.y1 - 1e-5 <= min(max(corner_y, 0), 500) <= hull.y2 + 1e-5


@pytest.mark.parametrize("labels", [{"rectanglelabels": []}, {"rectanglelabels": None}])
def test_b098_a_box_without_a_label_is_kept_and_flagged(labels: dict[str, Any]) -> None:
    drawn = read_regions([box(x=10, y=10, width=10, height=10, **labels)], SIZE)
    assert [(found.box.corners, found.role) for found in drawn.boxes] == [
        ((100, 50, 200, 100), None)
    ]
    assert drawn.flags == {ReviewFlag.NO_LABEL}


def test_b098_a_box_without_the_key_of_labels_is_kept_too() -> None:
    region = box(x=10, y=10, width=10, height=10)
    del region["value"]["rectanglelabels"]
    assert read_regions([region], SIZE).flags == {ReviewFlag.NO_LABEL}


def test_b099_other_kinds_are_passed_over_and_counted() -> None:
    result = [
        {"type": "brushlabels", "from_name": "brush", "value": {"rle": [1, 2]}},
        {"type": "relation", "from_id": "a", "to_id": "b"},
        {"type": "choices", "from_name": "otra", "value": {"choices": ["x"]}},
        {"type": "keypointlabels", "from_name": POINT, "value": {"keypointlabels": ["click"]}},
        "ghost",
        box(x=10, y=10, width=10, height=10),
    ]
    drawn = read_regions(result, SIZE)
    assert [found.box.corners for found in drawn.boxes] == [(100, 50, 200, 100)]
    assert drawn.foreign == 4
    assert drawn.points == []
    assert drawn.flags == {ReviewFlag.NOT_FINITE}


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, "12", True])
@pytest.mark.parametrize("side", ["x", "y", "width", "height", "rotation"])
def test_b100_a_number_that_is_none_gives_no_box(side: str, bad: Any) -> None:
    if side == "rotation" and bad is None:
        return  # no rotation is none
    value = {"x": 10, "y": 10, "width": 10, "height": 10, side: bad}
    drawn = read_regions([box(**value), point(50, bad)], SIZE)
    assert (drawn.boxes, drawn.points, drawn.flags) == ([], [], {ReviewFlag.NOT_FINITE})


def test_b101_pixels_in_the_place_of_percent_are_not_guessed_at() -> None:
    drawn = read_regions(
        [box(x=2561.4, y=6128.2, width=517.4, height=88.0), point(2561.4, 6128.2)], Size(1280, 800)
    )
    assert (drawn.boxes, drawn.points, drawn.flags) == ([], [], {ReviewFlag.OUTSIDE_IMAGE})


def test_b101_also_when_only_the_size_is_in_pixels() -> None:
    drawn = read_regions([box(x=10, y=10, width=517.4, height=88.0)], Size(1280, 800))
    assert (drawn.boxes, drawn.flags) == ([], {ReviewFlag.OUTSIDE_IMAGE})


def test_a_box_dragged_over_the_edge_is_cut_there_and_flagged() -> None:
    drawn = read_regions([box(x=-2, y=90, width=12, height=15)], SIZE)
    assert [found.box.corners for found in drawn.boxes] == [(0, 450, 100, 500)]
    assert drawn.flags == {ReviewFlag.CLIPPED}


def test_rounding_at_the_edge_is_no_flag() -> None:
    drawn = read_regions([box(x=95.2083, y=0, width=4.79170000001, height=100)], SIZE)
    assert drawn.boxes[0].box.x2 == 1000
    assert drawn.flags == set()


def test_a_box_drawn_backwards_is_the_same_box() -> None:
    drawn = read_regions([box(x=30, y=40, width=-10, height=-20)], SIZE)
    assert [found.box.corners for found in drawn.boxes] == [(200, 100, 300, 200)]
    assert drawn.flags == {ReviewFlag.FLIPPED}


def test_a_box_without_area_is_no_box() -> None:
    drawn = read_regions([box(x=30, y=40, width=0, height=20)], SIZE)
    assert (drawn.boxes, drawn.flags) == ([], {ReviewFlag.EMPTY_BOX})


def test_a_picture_turned_in_the_browser_says_nothing_of_ours() -> None:
    region = {**box(x=10, y=10, width=10, height=10), "image_rotation": 90}
    drawn = read_regions([region], SIZE)
    assert (drawn.boxes, drawn.flags) == ([], {ReviewFlag.IMAGE_ROTATED})


def test_b109_the_size_is_ours_and_another_one_is_flagged() -> None:
    region = {
        **box(x=10, y=10, width=10, height=10),
        "original_width": 2000,
        "original_height": 1000,
    }
    drawn = read_regions([region], SIZE)
    assert [found.box.corners for found in drawn.boxes] == [(100, 50, 200, 100)]
    assert drawn.flags == {ReviewFlag.SIZE_DIFFERS}


@pytest.mark.parametrize("labels", [["Botón"], ["boton_raro"], ["button", "link"]])
def test_a_label_of_no_code_of_ours_is_flagged(labels: list[str]) -> None:
    drawn = read_regions([box(x=10, y=10, width=10, height=10, rectanglelabels=labels)], SIZE)
    assert [found.role for found in drawn.boxes] == [None]
    assert drawn.flags == {ReviewFlag.UNKNOWN_LABEL}


def test_other_answers_that_were_shown_are_no_part_of_the_review() -> None:
    shown = {**point(10, 10), "from_name": CANDIDATE}
    drawn = read_regions([shown, point(50, 50)], SIZE)
    assert (len(drawn.points), drawn.candidates, drawn.foreign) == (1, 1, 0)


def test_a_text_written_for_a_box_goes_with_it_in_nfc() -> None:
    text = {
        "id": "r1",
        "from_name": TEXT,
        "type": "textarea",
        "value": {"x": 10, "y": 10, "width": 10, "height": 10, "text": ["An\u0303adir "]},
    }
    drawn = read_regions([text, box(x=10, y=10, width=10, height=10)], SIZE)
    assert [found.text for found in drawn.boxes] == ["A\u00f1adir"]
    assert drawn.foreign == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
REGION = st.fixed_dictionaries(
    {},
    optional={
        "id": JSON,
        "from_name": st.sampled_from([BOX, POINT, CANDIDATE, "verdict", "role", "x"]),
        "type": st.sampled_from(["rectanglelabels", "keypointlabels", "choices", "textarea"]),
        "value": st.dictionaries(
            st.sampled_from(["x", "y", "width", "height", "rotation", "rectanglelabels", "text"]),
            JSON | st.floats(-500, 500),
        ),
        "image_rotation": JSON,
    },
)


@given(st.lists(REGION | JSON, max_size=4))
def test_any_json_is_read_and_what_is_placed_lies_on_the_image(result: list[Any]) -> None:
    drawn = read_regions(result, SIZE)
    for found in drawn.boxes:
        assert 0 <= found.box.x1 < found.box.x2 <= SIZE.width
        assert 0 <= found.box.y1 < found.box.y2 <= SIZE.height
    assert all(spot.point.inside(SIZE) for spot in drawn.points)
