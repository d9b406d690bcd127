"""Draw the screens that nano is made for: seeded, so that a seed is a screen.

Text is monospaced, 8 px a character, and in the plain split aligned to the model's 16 px patches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipeline.nano.labels import LABELS

Pixels = npt.NDArray[np.uint8]
Box = tuple[int, int, int, int]

CELL = 32
PATCH = 16
CHAR = 8
ABOVE, BELOW = 6, 22
"""A button reaches from 6 px above the top of its line of text to 22 px below it."""

SIZES = ((256, 192), (192, 256), (320, 160), (256, 256))
"""Width and height of the screens, in pixels: all within the processor's bounds."""

COLOURS = (
    (37, 99, 235), (22, 128, 61), (185, 28, 28), (126, 34, 206),
    (15, 118, 110), (180, 83, 9), (51, 65, 85), (190, 24, 93),
)  # fmt: skip
PAPERS = ((255, 255, 255), (248, 250, 252), (243, 244, 246), (250, 250, 245))

GLYPHS = " ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzÁÉÍÓÚÑáéíóúñü"
FONTS = ("DejaVu Sans Mono", "DejaVu Sans Mono Bold", "Liberation Mono")
"""Rows of `glyphs.png`, in order."""


@dataclass(frozen=True, slots=True)
class Button:
    """One button: its label (by index in `LABELS`) and its box in pixels of the screen.

    Attributes:
        text_at: left and top of its line of text, in pixels.
    """

    label: int
    box: Box
    text_at: tuple[int, int]

    @property
    def text(self) -> str:
        """The label as it is drawn."""
        return LABELS[self.label]


@dataclass(frozen=True, slots=True)
class Screen:
    """A drawn screen: RGB pixels (height, width, 3) and its buttons in reading order."""

    pixels: Pixels
    buttons: tuple[Button, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]

    def image(self) -> Image.Image:
        """The screen as an image."""
        return Image.fromarray(self.pixels)

    def absent(self) -> tuple[str, ...]:
        """Labels that no button of this screen has."""
        shown = {button.label for button in self.buttons}
        return tuple(text for index, text in enumerate(LABELS) if index not in shown)


@dataclass(frozen=True, slots=True)
class Split:
    """A family of screens.

    Attributes:
        sizes: (width, height) pairs that are drawn from.
        shift: largest offset of a button from the patch grid, in pixels, each way.
        fonts: rows of the glyph sheet that are drawn from.
        max_buttons: a screen has between 3 and so many buttons, as far as they fit.
    """

    sizes: tuple[tuple[int, int], ...] = SIZES
    shift: int = 0
    fonts: tuple[int, ...] = (0,)
    max_buttons: int = 8


PLAIN = Split()
HARDER = Split(shift=1, fonts=(0, 1, 2))


@cache
def _glyph_sheet() -> npt.NDArray[np.float32]:
    """Coverage 0-1 of each glyph: (font, character, 16, 8)."""
    with Image.open(Path(__file__).with_name("glyphs.png")) as sheet:
        grey = np.asarray(sheet.convert("L"), dtype=np.float32) / 255
    rows = grey.reshape(len(FONTS), PATCH, len(GLYPHS), CHAR)
    return np.ascontiguousarray(rows.transpose(0, 2, 1, 3))


@cache
def _ink(text: str, font: int) -> npt.NDArray[np.float32]:
    """Coverage of a line of text: (16, 8 * characters)."""
    sheet = _glyph_sheet()[font]
    return np.concatenate([sheet[GLYPHS.index(letter)] for letter in text], axis=1)


def draw_screen(seed: int, split: Split = PLAIN) -> Screen:
    """The screen of this seed: labels differ from one another, boxes do not touch."""
    generator = np.random.default_rng([seed, 7])
    width, height = split.sizes[generator.integers(len(split.sizes))]
    paper = PAPERS[generator.integers(len(PAPERS))]
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = paper
    wanted = int(generator.integers(3, split.max_buttons + 1))
    font = split.fonts[generator.integers(len(split.fonts))]
    buttons = []
    for label, x, line, wide in _places(generator, width, height, wanted):
        dx, dy = generator.integers(-split.shift, split.shift + 1, size=2)
        buttons.append(_draw(pixels, generator, label, (x + int(dx), line + int(dy), wide), font))
    return Screen(pixels, tuple(sorted(buttons, key=lambda button: (button.box[1], button.box[0]))))


def _places(
    generator: np.random.Generator, width: int, height: int, wanted: int
) -> list[tuple[int, int, int, int]]:
    """Label, left edge, top of the text line and width of each button."""
    lines: dict[int, list[tuple[int, int]]] = {row: [] for row in range(1, height // CELL)}
    places: list[tuple[int, int, int, int]] = []
    for label in generator.permutation(len(LABELS)):
        if len(places) == wanted:
            break
        letters = -(-len(LABELS[label]) // 2)
        wide = PATCH * (letters + 2 + int(generator.integers(0, 3)))
        row = int(generator.integers(1, height // CELL))
        if wide > width:
            continue
        x = PATCH * int(generator.integers(0, (width - wide) // PATCH + 1))
        free = all(x >= right + CELL or x + wide + CELL <= left for left, right in lines[row])
        if free:
            lines[row].append((x, x + wide))
            places.append((int(label), x, CELL * row, wide))
    return places


def _draw(
    pixels: Pixels,
    generator: np.random.Generator,
    label: int,
    place: tuple[int, int, int],
    font: int,
) -> Button:
    x, line, wide = place
    x = min(max(x, 0), pixels.shape[1] - wide)
    colour = np.array(COLOURS[generator.integers(len(COLOURS))], np.float32)
    box = (x, line - ABOVE, x + wide, min(line + BELOW, pixels.shape[0]))
    filled = bool(generator.integers(2))
    area = pixels[box[1] : box[3], box[0] : box[2]]
    inside = area[2:-2, 2:-2].copy()
    area[:] = colour
    if not filled:
        area[2:-2, 2:-2] = inside
    ink = _ink(LABELS[label], font)
    spare = (wide - ink.shape[1]) // PATCH // 2
    left = x + PATCH * max(spare, 1)
    under = pixels[line : line + PATCH, left : left + ink.shape[1]]
    front = np.float32(255) if filled else colour
    alpha = ink[: under.shape[0], :, None]
    under[:] = np.rint(under * (1 - alpha) + front * alpha)
    return Button(label, box, (left, line))
