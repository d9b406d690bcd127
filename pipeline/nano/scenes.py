"""Nano's screens as the probe asks about them: never trained on, and of shapes that differ."""

from __future__ import annotations

from pipeline.nano.prompts import TARGETS
from pipeline.nano.screens import SIZES, Split, draw_screen
from schemas.geometry import Box
from transforms.probe.scene import Extent, Scene, Target

FIRST_SEED, SEEDS = 950_000, 50_000
"""The probe's own seeds: training begins at 1,000,000, evaluation, tests and demo end below."""

OBLONG = tuple((width, height) for width, height in SIZES if width != height)
"""On a square screen pixels, and swapped axes, are harder to tell from fractions."""

SCREENS = {Extent.START: 4, Extent.FULL: 9}


def nano_scenes(extent: Extent, seed: int) -> tuple[Scene, ...]:
    """Screens of nano's plain split, in turn of each oblong size, with three to eight buttons.

    Args:
        extent: how many.
        seed: the same screens for the same seed.
    """
    first = seed * SCREENS[Extent.FULL] % (SEEDS - SCREENS[Extent.FULL])
    return tuple(_scene(FIRST_SEED + first + turn, turn) for turn in range(SCREENS[extent]))


def _scene(seed: int, turn: int) -> Scene:
    screen = draw_screen(seed, Split(sizes=(OBLONG[turn % len(OBLONG)],)))
    targets = (
        Target(
            button.text,
            Box(*button.box),
            TARGETS[(seed + place) % len(TARGETS)].format(button.text),
        )
        for place, button in enumerate(screen.buttons)
    )
    return Scene(screen.image(), tuple(targets))
