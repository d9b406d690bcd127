"""The probe's screens: same pixels every time, targets that are really there, in Spanish."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from schemas.geometry import Size
from transforms.probe.labels import LABELS, draw_label, label_font, label_width
from transforms.probe.scene import FULL_SIZES, FULL_TARGETS, draw_scenes


def test_the_same_seed_draws_the_same_pixels() -> None:
    first, again = (draw_scenes(FULL_SIZES[:3], 4, 7) for _ in range(2))
    other = draw_scenes(FULL_SIZES[:3], 4, 8)
    for one, two, three in zip(first, again, other, strict=True):
        assert one.image.tobytes() == two.image.tobytes()
        assert one.targets == two.targets
        assert one.targets != three.targets


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_buttons_lie_apart_on_their_screen(seed: int) -> None:
    for scene in draw_scenes(FULL_SIZES, FULL_TARGETS, seed):
        assert len(scene.targets) == FULL_TARGETS
        for index, target in enumerate(scene.targets):
            box = target.box
            assert 0 <= box.x1 < box.x2 <= scene.size.width
            assert 0 <= box.y1 < box.y2 <= scene.size.height
            assert all(box.iou(other.box) == 0 for other in scene.targets[:index])


def test_a_button_is_painted_where_its_box_is() -> None:
    for scene in draw_scenes(FULL_SIZES, FULL_TARGETS, 0):
        page = scene.image.getpixel((scene.size.width - 1, scene.size.height - 1))
        for target in scene.targets:
            x, y = round(target.box.center.x), round(target.box.y1 + 1)
            assert scene.image.getpixel((x, y)) != page


def test_labels_are_spanish_and_each_names_one_target() -> None:
    assert len(set(LABELS)) == len(LABELS) >= len(FULL_SIZES) * FULL_TARGETS
    assert all(label == unicodedata.normalize("NFC", label) for label in LABELS)
    assert set("áéóúñÚ") <= set("".join(LABELS))
    scenes = draw_scenes(FULL_SIZES, FULL_TARGETS, 3)
    labels = [target.label for scene in scenes for target in scene.targets]
    assert len(set(labels)) == len(labels)


def ink(text: str) -> bytes:
    image = Image.new("RGB", (400, 80), "white")
    draw_label(ImageDraw.Draw(image), (10, 40), text, label_font(40), (0, 0, 0))
    return image.tobytes()


def test_accents_are_drawn_and_take_no_room() -> None:
    for plain, accented in (("ano", "año"), ("codigo", "código"), ("Ultimo", "Último")):
        assert ink(plain) != ink(accented)
        font = label_font(40)
        assert label_width(plain, font) == label_width(accented, font)
    assert ink("año") != ink("aúo")


def test_too_many_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="more labels than exist"):
        draw_scenes([Size(800, 600)] * 20, 6, 0)
