"""Batches to learn from: screens with what is under each cell, and questions with answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pipeline.nano.labels import LABELS
from pipeline.nano.screens import CELL, CHAR, GLYPHS, PATCH, Screen, Split, draw_screen

if TYPE_CHECKING:
    from tokenizers import Tokenizer

IGNORED = -100
ENDED = "<|im_end|>"
OPENING = "<|im_start|>user\n<|vision_start|>"
ASIDE = "<|im_end|>\n<|im_start|>assistant\n"
ASKING = "¿Dónde está?\n{target}"
LISTING = "¿Qué botones hay?"
"""The prompts; the profile `nano` has the same."""
TARGETS = ("{}", "el botón {}", "Pulse {}.", 'Pulse el botón "{}".', "Haga clic en {}.")
"""Ways to name a target."""


def scaled(box: tuple[int, int, int, int], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The box in the 0-1000 frame, rounded as the answers are."""
    width, height = size
    sides = (width, height, width, height)
    x1, y1, x2, y2 = (round(1000 * value / side) for value, side in zip(box, sides, strict=True))
    return x1, y1, x2, y2


def box_json(box: tuple[int, int, int, int]) -> str:
    """One element of an answer."""
    return f'{{"bbox_2d":[{",".join(map(str, box))}],"label":"button"}}'


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
            label[row - 1, here] = np.where(label[row - 1, here] == len(LABELS), IGNORED, label[row - 1, here])
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


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions about a batch of screens, several in one sequence after the screen's tokens.

    Attributes:
        ids: (B, L) tokens, image tokens first as placeholders.
        image: slice of the image tokens.
        positions: (3, B, L); mask: (B, 1, L, L); target: (B, L) next token or -100.
        kind: (B, L) 0 nothing, 1 first token of an answer, 2 coordinate, 3 the rest.
        probe: (B, Q) index of each question's label; aim: (B, Q, L) True on cells to look at.
    """

    ids: Tensor
    image: slice
    positions: Tensor
    mask: Tensor
    target: Tensor
    kind: Tensor
    probe: Tensor
    aim: Tensor

    def to(self, device: str) -> Questions:
        """The same on a device."""
        return Questions(
            self.ids.to(device), self.image, self.positions.to(device), self.mask.to(device),
            self.target.to(device), self.kind.to(device), self.probe.to(device), self.aim.to(device),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Question:
    ids: list[int]
    answer: int
    label: int
    cells: list[int]


class Asker:
    """Builds questions; keeps the tokenizer and what it said before."""

    def __init__(self, words: Tokenizer) -> None:
        self._words = words
        self._known: dict[str, list[int]] = {}
        self._labels = {self.ids(text)[0] for text in LABELS}
        self._numbers = {self.ids(str(number))[0] for number in range(1001)}

    def ids(self, text: str) -> list[int]:
        """Tokens of a text."""
        if text not in self._known:
            self._known[text] = self._words.encode(text).ids
        return self._known[text]

    def ask(
        self, scene: Scenes, generator: np.random.Generator, count: int, *, absent: float, listing: bool
    ) -> Questions:
        """`count` questions on each screen, a share `absent` of them about what is not there."""
        asked = [self._about(screen, generator, count, absent, listing) for screen in scene.screens]
        return self._pack(asked, scene.screens[0].size)

    def _about(
        self, screen: Screen, generator: np.random.Generator, count: int, absent: float, listing: bool
    ) -> list[_Question]:
        missing = screen.absent()
        questions = []
        for _ in range(count):
            if generator.random() < absent:
                questions.append(self._question(screen, missing[generator.integers(len(missing))], None, generator))
            else:
                index = int(generator.integers(len(screen.buttons)))
                questions.append(self._question(screen, screen.buttons[index].text, index, generator))
        if listing:
            questions.append(self._list(screen))
        return questions

    def _question(self, screen: Screen, text: str, index: int | None, generator: np.random.Generator) -> _Question:
        target = TARGETS[generator.integers(len(TARGETS))].format(text)
        prompt = self.ids(ASKING.format(target=target)) + self.ids(ASIDE)
        label = next(place for place, token in enumerate(prompt) if token in self._labels)
        if index is None:
            return _Question(prompt + self.ids("[]") + self.ids(ENDED), len(prompt), label, [-1])
        button = screen.buttons[index]
        row, here = button_cells(button.box)
        columns = screen.size[0] // CELL
        cells = [row * columns + column for column in range(here.start, here.stop)]
        answer = self.answer([scaled(button.box, screen.size)])
        return _Question(prompt + answer, len(prompt), label, cells)

    def _list(self, screen: Screen) -> _Question:
        prompt = self.ids(LISTING) + self.ids(ASIDE)
        answer = self.answer([scaled(button.box, screen.size) for button in screen.buttons])
        return _Question(prompt + answer, len(prompt), 0, [])

    def answer(self, boxes: list[tuple[int, int, int, int]]) -> list[int]:
        """Tokens of an answer with these boxes, to its end."""
        ids: list[int] = []
        for index, box in enumerate(boxes):
            ids += self.ids(',{"bbox_2d":[' if index else '[{"bbox_2d":[')
            for place, value in enumerate(box):
                ids += ([*self.ids(",")] if place else []) + self.ids(str(value))
            ids += self.ids('],"label":"button"}')
        return ids + self.ids("]") + self.ids(ENDED)

    def _pack(self, asked: list[list[_Question]], size: tuple[int, int]) -> Questions:
        columns, rows = size[0] // CELL, size[1] // CELL
        opening = self.ids(OPENING)
        image = slice(len(opening), len(opening) + rows * columns)
        begin = image.stop + 1
        length = begin + max(sum(len(question.ids) - 1 for question in row) for row in asked)
        many = max(len(row) for row in asked)
        shape = (len(asked), length)
        ids, target = np.zeros(shape, np.int64), np.full(shape, IGNORED)
        kind, part = np.zeros(shape, np.int64), np.full(shape, -1)
        places = np.zeros((3, *shape), np.int64)
        probe = np.zeros((len(asked), many), np.int64)
        aim = np.zeros((len(asked), many, length), bool)
        ids[:, : len(opening)] = opening
        ids[:, image] = self.ids("<|image_pad|>")[0]
        ids[:, image.stop] = self.ids("<|vision_end|>")[0]
        part[:, :begin] = 0
        start = len(opening)
        places[:, :, :start] = np.arange(start)
        places[0, :, image] = start
        places[1, :, image] = start + np.repeat(np.arange(rows), columns)
        places[2, :, image] = start + np.tile(np.arange(columns), rows)
        after = start + max(rows, columns)
        places[:, :, image.stop] = after
        for row, questions in enumerate(asked):
            cursor = begin
            for index, question in enumerate(questions):
                tokens = np.array(question.ids)
                span = slice(cursor, cursor + len(tokens) - 1)
                ids[row, span] = tokens[:-1]
                places[:, row, span] = after + 1 + np.arange(len(tokens) - 1)
                part[row, span] = index + 1
                told = tokens[question.answer :]
                where = slice(cursor + question.answer - 1, span.stop)
                target[row, where] = told
                kind[row, where] = [2 if token in self._numbers else 3 for token in told]
                kind[row, where.start] = 1
                probe[row, index] = cursor + question.label
                for cell in question.cells:
                    aim[row, index, image.stop if cell < 0 else image.start + cell] = True
                cursor = span.stop
        parts = torch.from_numpy(part)
        same = (parts[:, :, None] == parts[:, None, :]) | (parts[:, None, :] == 0)
        mask = same & torch.tril(torch.ones(length, length, dtype=torch.bool))
        mask |= torch.eye(length, dtype=torch.bool)
        return Questions(
            torch.from_numpy(ids), image, torch.from_numpy(places), mask[:, None],
            torch.from_numpy(target), torch.from_numpy(kind), torch.from_numpy(probe), torch.from_numpy(aim),
        )  # fmt: skip
