"""What no person may see: read whole, or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.geometry import Box, Size
from transforms.sidecar import Sidecar, parse_sidecar
from transforms.sidecar_boxes import BoxConvention

SIZE = Size(400, 300)


def read(masks: object, **more: object) -> Sidecar:
    return parse_sidecar(json.dumps({"masks": masks, **more}).encode(), SIZE)


def test_boxes_are_pixels_and_end_at_the_edge() -> None:
    sidecar = read([[10, 20, 30.5, 40], [390, 290, 420, 320]])
    assert sidecar.masks == (Box(10, 20, 30.5, 40), Box(390, 290, 400, 300))
    assert "masks_unreadable" not in sidecar.flags


def test_an_empty_list_says_that_there_is_nothing_to_hide() -> None:
    assert read([]).masks == ()


@pytest.mark.parametrize(
    "data",
    [None, b"{}", b"[1]", b"{", json.dumps({"queries": ["Guardar"]}).encode()],
)
def test_silence_is_not_nothing_to_hide(data: bytes | None) -> None:
    assert parse_sidecar(data, SIZE).masks is None


@pytest.mark.parametrize(
    "masks",
    [
        None,
        "10,20,30,40",
        {"x1": 1},
        [[10, 20, 30]],
        [[10, 20, 30, "40"]],
        [[30, 20, 10, 40]],
        [[10, 20, 10, 40]],
        [[500, 20, 600, 40]],
        [[10, 20, 30, 40], [float("inf"), 0, 1, 1]],
        [[10, 20, 30, 40], None],
    ],
)
def test_one_box_that_cannot_be_read_makes_all_unknown(masks: object) -> None:
    sidecar = read(masks)
    assert sidecar.masks is None
    assert "masks_unreadable" in sidecar.flags


def test_masks_are_meant_like_the_other_boxes() -> None:
    data = json.dumps({"masks": [[0.25, 0.5, 0.5, 0.5]]}).encode()
    sidecar = parse_sidecar(data, SIZE, BoxConvention("xywh", "unit"))
    assert sidecar.masks == (Box(100, 150, 300, 300),)


@given(
    st.lists(
        st.tuples(st.integers(0, 398), st.integers(0, 298), st.integers(1, 50), st.integers(1, 50)),
        max_size=5,
    )
)
def test_every_box_that_is_stated_is_covered(boxes: list[tuple[int, int, int, int]]) -> None:
    stated = [[x, y, x + w, y + h] for x, y, w, h in boxes]
    masks = read(stated).masks
    assert masks is not None
    assert [box.corners for box in masks] == [
        (x1, y1, min(x2, 400), min(y2, 300)) for x1, y1, x2, y2 in stated
    ]
