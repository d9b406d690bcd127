"""Screens to learn from, with what the vision side should see in each cell and patch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.nano.labels import LABELS
from pipeline.nano.screens import CELL, CHAR, GLYPHS, PATCH, Screen, Split, draw_screen

IGNORED = -100


def scaled(box: tuple[int, int, int, int], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The box in the 0-1000 frame, rounded as the answers are."""
    width, height = size
    sides = (width, height, width, height)
    x1, y1, x2, y2 = (round(1000 * value / side) for value, side in zip(box, sides, strict=True))
    return x1, y1, x2, y2


@dataclass(frozen=True, slots=True)
class Scenes:
    """Screens of one size and what the training head should say of each of their cells.

    Attributes:
        pixels: (B, H, W, 3) uint8.
        label: (B, cells): index in `LABELS`, `len(LABELS)` for bare ground, -100 where unclear.
        box: (B, cells, 4): the button's box in 0-1000, -100 on bare ground.
        letters: (B, patches, 2): index in `GLYPHS` of the two characters drawn in a patch, in
            the order of the model's patches; 0 where there is none.
    """

    screens: tuple[Screen, ...]
    pixels: Tensor
    label: Tensor
    box: Tensor
    letters: Tensor

    def to(self, device: str) -> Scenes:
        """The same on a device; the pixels stay."""
        return Scenes(
            self.screens,
            self.pixels,
            self.label.to(device),
            self.box.to(device),
            self.letters.to(device),
        )


def scenes(seeds: range, split: Split) -> Scenes:
    """Draw the screens of these seeds; `split` must have one size."""
    drawn = tuple(draw_screen(seed, split) for seed in seeds)
    cells = [_cells(screen) for screen in drawn]
    return Scenes(
        drawn,
        torch.from_numpy(np.stack([screen.pixels for screen in drawn])),
        torch.tensor(np.stack([label for label, _ in cells])),
        torch.tensor(np.stack([box for _, box in cells])),
        torch.tensor(np.stack([_letters(screen) for screen in drawn])),
    )


def _cells(screen: Screen) -> tuple[np.ndarray, np.ndarray]:
    width, height = screen.size
    rows, columns = height // CELL, width // CELL
    label = np.full((rows, columns), len(LABELS))
    box = np.full((rows, columns, 4), IGNORED)
    for button in screen.buttons:
        row, here = button_cells(button.box)
        if row > 0:
            label[row - 1, here] = np.where(
                label[row - 1, here] == len(LABELS), IGNORED, label[row - 1, here]
            )
        label[row, here] = button.label
        box[row, here] = scaled(button.box, screen.size)
    return label.reshape(-1), box.reshape(-1, 4)


def _letters(screen: Screen) -> np.ndarray:
    width, height = screen.size
    slots = np.zeros((height // PATCH, width // CHAR), np.int64)
    for button in screen.buttons:
        left, top = (button.text_at[0] + CHAR // 2) // CHAR, (button.text_at[1] + CHAR) // PATCH
        spelled = [GLYPHS.index(letter) for letter in button.text][: slots.shape[1] - left]
        slots[min(top, len(slots) - 1), left : left + len(spelled)] = spelled
    rows, columns = height // CELL, width // CELL
    blocks = slots.reshape(rows, 2, columns, 2, 2).transpose(0, 2, 1, 3, 4)
    return blocks.reshape(-1, 2)


def button_cells(box: tuple[int, int, int, int]) -> tuple[int, slice]:
    """Row and columns of the cells that hold a button's text line."""
    row = (box[1] + 12) // CELL
    return row, slice((box[0] + 8) // CELL, (box[2] - 9) // CELL + 1)
