"""Which screens the probe draws for a profile: the maker of each family that a profile may name."""

from __future__ import annotations

from pipeline.nano.scenes import nano_scenes
from schemas.profile import ProbeScreens
from transforms.probe.scene import SceneMaker, spanish_scenes

SCENE_MAKERS: dict[ProbeScreens, SceneMaker] = {"nano": nano_scenes, "spanish": spanish_scenes}
