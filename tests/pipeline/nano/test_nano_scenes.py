"""The probe's nano screens: known places, never trained on, of shapes that tell frames apart."""

import pickle
from typing import get_args

import pytest

from pipeline.demo.drawing import SCREENS, SPLITS
from pipeline.nano import scenes, train
from pipeline.nano.scenes import nano_scenes
from pipeline.probe_screens import SCENE_MAKERS
from schemas.profile import ProbeScreens
from transforms.probe.scene import Extent
from transforms.profiles.load import list_profiles, load_profile


@pytest.mark.parametrize("extent", list(Extent))
def test_a_seed_draws_the_same_screens(extent: Extent) -> None:
    first, again, other = (nano_scenes(extent, seed) for seed in (0, 0, 1))
    for one, two, three in zip(first, again, other, strict=True):
        assert one.image.tobytes() == two.image.tobytes()
        assert one.targets == two.targets
        assert one.targets != three.targets


@pytest.mark.parametrize("extent", list(Extent))
def test_shapes_differ_and_none_is_square(extent: Extent) -> None:
    sizes = {scene.size for scene in nano_scenes(extent, 3)}
    assert len({size.width / size.height for size in sizes}) >= 2
    assert all(size.width != size.height for size in sizes)
    assert {size.width > size.height for size in sizes} == {True, False}


@pytest.mark.parametrize("seed", [0, 1, 7, 12_345, 10**12])
def test_no_screen_was_trained_on_or_is_the_demo_s(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    draw = scenes.draw_screen
    monkeypatch.setattr(
        scenes, "draw_screen", lambda n, split: (drawn.append(n), draw(n, split))[1]
    )
    nano_scenes(Extent.FULL, seed)
    shown = {first + turn for _, first in SPLITS.values() for turn in range(SCREENS)}
    assert max(drawn) < train.FIRST_SEED
    assert not set(drawn) & shown
    assert len(set(drawn)) == len(drawn)


def test_a_target_is_one_button_named_by_its_label() -> None:
    for scene in nano_scenes(Extent.FULL, 0):
        labels = [target.label for target in scene.targets]
        assert len(set(labels)) == len(labels) >= 3
        assert all(target.label in target.instruction for target in scene.targets)
        pixels = scene.image.load()
        for target in scene.targets:
            corner = (int(target.box.x1), int(target.box.y1))
            assert pixels[corner] != pixels[0, 0]  # nothing is drawn in the first row of cells


@pytest.mark.parametrize("name", list_profiles())
def test_every_profile_s_screens_can_be_drawn(name: str) -> None:
    maker = SCENE_MAKERS[load_profile(name).probe_screens]
    assert pickle.loads(pickle.dumps(maker)) is maker
    assert sum(len(scene.targets) for scene in maker(Extent.START, 0)) >= 12


def test_every_family_has_a_maker() -> None:
    assert set(get_args(ProbeScreens)) == set(SCENE_MAKERS)
