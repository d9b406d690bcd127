import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.geometry import (
    Box,
    FrameKind,
    Point,
    SeenImage,
    Size,
    clip_box,
    clip_point,
    point_from_frame,
    point_to_frame,
)

side = st.integers(32, 20_000)
sizes = st.builds(Size, side, side)
share = st.floats(0, 1)


@st.composite
def chains(draw: st.DrawFn) -> SeenImage:
    """A resize, then a paste on a larger canvas, then a resize: what processors do."""
    seen = SeenImage.unchanged(draw(sizes)).resized(draw(sizes))
    left, top = draw(st.integers(0, 500)), draw(st.integers(0, 500))
    canvas = Size(seen.seen.width + left + 10, seen.seen.height + top + 10)
    return seen.placed(canvas, left, top).resized(draw(sizes))


@given(chains(), share, share, st.sampled_from(FrameKind))
def test_every_frame_there_and_back_is_the_same_point(
    seen: SeenImage, u: float, v: float, kind: FrameKind
) -> None:
    point = Point(u * seen.original.width, v * seen.original.height)
    there = point_to_frame(point, kind, seen)
    back = point_from_frame(*there, kind, seen)
    assert back.x == pytest.approx(point.x, abs=1e-6 * seen.original.width)
    assert back.y == pytest.approx(point.y, abs=1e-6 * seen.original.height)


def test_the_middle_of_a_norm_1000_frame_is_the_middle_of_the_original() -> None:
    seen = SeenImage.unchanged(Size(1920, 1080)).resized(Size(960, 540))
    assert point_from_frame(500, 500, FrameKind.NORM_1000, seen) == Point(960, 540)


def test_padding_is_undone_by_hand() -> None:
    seen = SeenImage.unchanged(Size(100, 50)).resized(Size(200, 100)).placed(Size(400, 200), 40, 20)
    assert point_from_frame(40, 20, FrameKind.SEEN_PX, seen) == Point(0, 0)
    assert point_from_frame(500, 500, FrameKind.NORM_1000, seen) == Point(80, 40)
    assert point_to_frame(Point(100, 50), FrameKind.PERCENT, seen) == (60.0, 60.0)


def test_original_pixels_ignore_what_the_model_saw() -> None:
    seen = SeenImage.unchanged(Size(100, 50)).resized(Size(32, 32))
    assert point_from_frame(7, 9, FrameKind.ORIGINAL_PX, seen) == Point(7, 9)


@pytest.mark.parametrize(
    "corners",
    [(5, 0, 5, 1), (6, 0, 5, 1), (0, 1, 1, 0), (math.nan, 0, 1, 1), (0, 0, math.inf, 1)],
)
def test_a_box_that_is_no_box_cannot_be_made(corners: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="box"):
        Box(*corners)


def test_iou_by_hand() -> None:
    assert Box(0, 0, 10, 10).iou(Box(5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert Box(0, 0, 10, 10).iou(Box(10, 0, 20, 10)) == 0.0


def test_clip_moves_a_near_miss_and_refuses_a_far_one() -> None:
    size = Size(100, 100)
    assert clip_point(Point(101, 50), size, 2) == Point(100, 50)
    assert clip_point(Point(103, 50), size, 2) is None


def test_a_size_below_one_pixel_is_refused() -> None:
    with pytest.raises(ValueError, match="0x5"):
        Size(0, 5)


def test_a_box_is_clipped_to_the_image_and_gone_when_off_it() -> None:
    size = Size(100, 50)
    assert clip_box(Box(-5, 10, 20, 60), size) == Box(0, 10, 20, 50)
    assert clip_box(Box(10, 10, 20, 20), size) == Box(10, 10, 20, 20)
    assert clip_box(Box(100, 10, 120, 20), size) is None
