import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipeline.colours import CANDIDATE, TRUTH
from pipeline.draw import Mark, draw_answer, draw_marks
from schemas.codes import Role
from schemas.geometry import Box, Point
from schemas.records import Item

RED = (230, 20, 30)


def blank(
    size: tuple[int, int] = (400, 300), colour: tuple[int, int, int] = (255, 255, 255)
) -> Image.Image:
    return Image.new("RGB", size, colour)


def where(image: Image.Image, colour: tuple[int, int, int]) -> set[tuple[int, int]]:
    pixels = image.load()
    return {
        (x, y) for x in range(image.width) for y in range(image.height) if pixels[x, y] == colour
    }


def test_a_box_is_drawn_on_its_own_pixels() -> None:
    drawn = draw_marks(blank(), [Mark(RED, box=Box(100, 50, 200, 150))])
    coloured = where(drawn, RED)
    xs, ys = {x for x, _ in coloured}, {y for _, y in coloured}
    assert (min(xs), max(xs), min(ys), max(ys)) == (100, 199, 50, 149)
    assert drawn.getpixel((150, 100)) == (255, 255, 255), "the inside stays as it was"


@pytest.mark.parametrize("ground", [(255, 255, 255), (0, 0, 0), RED, (128, 128, 128)])
def test_a_box_is_seen_on_any_ground(ground: tuple[int, int, int]) -> None:
    drawn = draw_marks(blank(colour=ground), [Mark(RED, box=Box(100, 50, 200, 150))])
    across = {drawn.getpixel((x, 100)) for x in range(95, 106)} - {ground}
    assert any(max(abs(a - b) for a, b in zip(tone, ground, strict=True)) > 100 for tone in across)


def test_a_point_is_drawn_around_its_place() -> None:
    drawn = draw_marks(blank(), [Mark(RED, point=Point(120.4, 80.6))])
    changed = {
        (x, y)
        for x in range(drawn.width)
        for y in range(drawn.height)
        if drawn.getpixel((x, y)) != (255, 255, 255)
    }
    xs, ys = [x for x, _ in changed], [y for _, y in changed]
    assert (min(xs) + max(xs)) / 2 == pytest.approx(120, abs=1)
    assert (min(ys) + max(ys)) / 2 == pytest.approx(81, abs=1)


def test_candidates_are_fainter_than_the_answer_and_lie_below_it() -> None:
    box = Box(50, 50, 150, 120)
    only = draw_answer(blank(), [], RED, candidates=[(None, box)])
    assert where(only, CANDIDATE) == set()
    assert only.getpixel((50, 80)) != (255, 255, 255)
    both = draw_answer(blank(), [Item(box=box)], RED, candidates=[(None, box)])
    assert both.getpixel((50, 80)) == RED


def test_truth_has_a_colour_of_its_own_and_is_optional() -> None:
    box = Box(50, 50, 150, 120)
    assert where(draw_answer(blank(), [], RED, truth=[box]), TRUTH)
    assert not where(draw_answer(blank(), [], RED), TRUTH)


def test_several_items_are_numbered() -> None:
    one = draw_answer(blank(), [Item(box=Box(50, 50, 150, 120))], RED)
    item = Item(box=Box(50, 50, 150, 120), role=Role.BUTTON)
    tagged = draw_answer(blank(), [item, Item(point=Point(300, 200))], RED)
    above = [(x, y) for x in range(50, 100) for y in range(30, 48)]
    assert all(one.getpixel(at) == (255, 255, 255) for at in above)
    assert any(tagged.getpixel(at) == (16, 18, 24) for at in above)


def test_letters_that_the_font_lacks_are_left_out_of_a_tag() -> None:
    accented = draw_marks(blank(), [Mark(RED, box=Box(50, 50, 90, 90), tag="añbó")])
    plain = draw_marks(blank(), [Mark(RED, box=Box(50, 50, 90, 90), tag="ab")])
    assert accented.tobytes() == plain.tobytes()


def test_the_picture_given_is_not_changed_and_other_modes_are_taken() -> None:
    picture = Image.new("L", (100, 80), 200)
    before = picture.tobytes()
    drawn = draw_marks(picture, [Mark(RED, box=Box(10, 10, 40, 40))])
    assert (drawn.mode, drawn.size) == ("RGB", (100, 80))
    assert picture.tobytes() == before


side = st.integers(min_value=8, max_value=300)
place = st.floats(min_value=-500, max_value=900)


@given(side, side, place, place, st.floats(min_value=0.1, max_value=900))
def test_marks_partly_or_wholly_outside_never_fail(
    width: int, height: int, x: float, y: float, extent: float
) -> None:
    mark = Mark(RED, Box(x, y, x + extent, y + extent), Point(x, y), "12 button")
    assert draw_marks(blank((width, height)), [mark]).size == (width, height)
