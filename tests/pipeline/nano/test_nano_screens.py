"""Nano's screens: a seed is a screen, and what is said about it is what is drawn."""

import itertools

import numpy as np
import pytest

from pipeline.nano.labels import LABELS
from pipeline.nano.screens import GLYPHS, HARDER, PLAIN, SIZES, Screen, Split, draw_screen
from schemas.geometry import Box

SPLITS = pytest.mark.parametrize("split", [PLAIN, HARDER], ids=["plain", "harder"])


@SPLITS
def test_a_seed_is_a_screen(split: Split) -> None:
    first, again, other = (draw_screen(seed, split) for seed in (3, 3, 4))
    assert np.array_equal(first.pixels, again.pixels)
    assert first.buttons == again.buttons
    assert first.buttons != other.buttons


@SPLITS
@pytest.mark.parametrize("seed", range(40))
def test_buttons_lie_on_the_screen_apart_and_in_reading_order(seed: int, split: Split) -> None:
    screen = draw_screen(seed, split)
    width, height = screen.size
    assert (width, height) in SIZES
    assert 1 <= len(screen.buttons) <= 8
    for button in screen.buttons:
        x1, y1, x2, y2 = button.box
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
    for one, other in itertools.combinations(screen.buttons, 2):
        assert one.label != other.label
        assert Box(*one.box).iou(Box(*other.box)) <= 0.1
    order = [(button.box[1], button.box[0]) for button in screen.buttons]
    assert order == sorted(order)


def ground(screen: Screen) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    same: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (
        screen.pixels == screen.pixels[0, 0]
    ).all(-1)
    return same


@pytest.mark.parametrize("seed", range(20))
def test_outside_the_boxes_nothing_is_drawn(seed: int) -> None:
    screen = draw_screen(seed)
    bare = ground(screen)
    for button in screen.buttons:
        x1, y1, x2, y2 = button.box
        assert not bare[y1, x1:x2].any()
        assert not bare[y2 - 1, x1:x2].any()
        bare[y1:y2, x1:x2] = True
    assert bare.all()


def test_absent_labels_are_those_not_drawn() -> None:
    screen = draw_screen(5)
    drawn = {button.text for button in screen.buttons}
    assert drawn.isdisjoint(screen.absent())
    assert drawn | set(screen.absent()) == set(LABELS)


def test_every_label_can_be_drawn_and_is_unlike_the_others() -> None:
    assert len(set(LABELS)) == len(LABELS) == 64
    assert set("".join(LABELS)) <= set(GLYPHS)


@pytest.mark.parametrize("size", SIZES)
def test_every_size_is_drawn(size: tuple[int, int]) -> None:
    assert size in {draw_screen(seed).size for seed in range(60)}
