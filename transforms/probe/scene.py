"""Synthetic screens: buttons with Spanish labels at known places, the same pixels every time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

from schemas.geometry import Box, Size
from transforms.probe.labels import LABELS, draw_label, label_font, label_width

FULL_SIZES = (
    Size(1600, 720),
    Size(240, 150),
    Size(412, 1480),
    Size(2560, 1440),
    Size(640, 400),
    Size(1500, 2400),
    Size(3000, 700),
    Size(480, 800),
)
"""Wide and tall, small and large: no side near 1000 px and no shape near 1:1, so that pixels,
fractions and swapped axes lead to different places; the smallest is enlarged by every known smart
resize, the largest is shrunk by most."""

START_SIZES = FULL_SIZES[:4]
"""The handful that is asked at every engine start."""

FULL_TARGETS, START_TARGETS = 6, 4
"""Buttons asked about on each screen."""

_COLOURS = ((25, 80, 160), (160, 60, 30), (30, 110, 70), (90, 50, 130), (60, 60, 70))
_PAGES = ((250, 250, 250), (238, 242, 247), (246, 240, 232), (255, 255, 255))


@dataclass(frozen=True, slots=True)
class Target:
    """A button of a drawn screen.

    Attributes:
        label: unlike any other of its screen.
        box: in pixels of the screen.
        instruction: what is asked about it.
    """

    label: str
    box: Box
    instruction: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A drawn screen and the buttons on it."""

    image: Image.Image
    targets: tuple[Target, ...]

    @property
    def size(self) -> Size:
        """Size of the screen in pixels."""
        return Size(*self.image.size)


class Extent(StrEnum):
    """How much is asked: the handful of every engine start, or a whole probe."""

    START = "start"
    FULL = "full"


SceneMaker: TypeAlias = "Callable[[Extent, int], tuple[Scene, ...]]"
"""Draws the screens of a probe of some extent, seeded; picklable, since every worker starts one."""


def spanish_scenes(extent: Extent, seed: int) -> tuple[Scene, ...]:
    """Pages with Spanish buttons, of sizes that tell all conventions apart."""
    if extent is Extent.START:
        return draw_scenes(START_SIZES, START_TARGETS, seed)
    return draw_scenes(FULL_SIZES, FULL_TARGETS, seed)


def draw_scenes(sizes: Sequence[Size], targets: int, seed: int) -> tuple[Scene, ...]:
    """One screen for each size, with `targets` buttons each.

    Args:
        sizes: of the screens, in pixels; sides of 120 px and more have room for six buttons.
        targets: buttons on each screen; no label appears twice in the whole probe.
        seed: of colours, labels and places.

    Raises:
        ValueError: if there are not enough labels.
    """
    if len(sizes) * targets > len(LABELS):
        raise ValueError(f"{len(sizes)} screens of {targets} targets need more labels than exist")
    chance = random.Random(seed)
    labels = chance.sample(LABELS, len(sizes) * targets)
    return tuple(
        _draw(size, labels[number * targets : (number + 1) * targets], chance)
        for number, size in enumerate(sizes)
    )


def _draw(size: Size, labels: Sequence[str], chance: random.Random) -> Scene:
    image = Image.new("RGB", (size.width, size.height), chance.choice(_PAGES))
    draw = ImageDraw.Draw(image)
    bar = max(12, size.height // 24)
    draw.rectangle((0, 0, size.width, bar), fill=(45, 52, 64))
    font = label_font(max(10, min(size.width, size.height) // 28))
    places = _cells(size, bar, len(labels), chance)
    targets = tuple(
        Target(label, _button(draw, cell, label, font, chance), f"Presione el botón «{label}»")
        for label, cell in zip(labels, places, strict=True)
    )
    return Scene(image, targets)


def _cells(size: Size, top: int, count: int, chance: random.Random) -> list[Box]:
    """`count` cells of a grid below the bar, drawn at random, with cells to spare."""
    columns, rows = (2, count) if size.height > size.width else (max(3, count // 2 + 1), 3)
    if size.height < size.width < 400:
        columns, rows = 2, max(3, (count + 1) // 2)
    width, height = size.width / columns, (size.height - top) / rows
    cells = [
        Box(x * width, top + y * height, (x + 1) * width, top + (y + 1) * height)
        for x in range(columns)
        for y in range(rows)
    ]
    return chance.sample(cells, count)


def _button(
    draw: ImageDraw.ImageDraw,
    cell: Box,
    label: str,
    font: ImageFont.FreeTypeFont,
    chance: random.Random,
) -> Box:
    """Draw one button somewhere in its cell; its box in pixels."""
    room_x, room_y = cell.x2 - cell.x1 - 2, cell.y2 - cell.y1 - 2
    width = min(room_x, label_width(label, font) + font.size * 1.4)
    height = min(room_y, font.size * 2.0)
    left = round(cell.x1 + 1 + chance.random() * (room_x - width))
    top = round(cell.y1 + 1 + chance.random() * (room_y - height))
    box = Box(left, top, left + round(width), top + round(height))
    draw.rounded_rectangle(box.corners, radius=font.size // 3, fill=chance.choice(_COLOURS))
    start = box.center.x - label_width(label, font) / 2
    draw_label(draw, (start, box.center.y), label, font, (255, 255, 255))
    return box
