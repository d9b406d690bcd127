"""Questions to learn from: several about one screen in one sequence, none seeing another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pipeline.nano.labels import LABELS
from pipeline.nano.lessons import IGNORED, Scenes, button_cells, scaled
from pipeline.nano.prompts import ASKING, LISTING, TARGETS
from pipeline.nano.screens import CELL, Box, Screen

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OPENING = "<|im_start|>user\n<|vision_start|>"
ASIDE = "<|im_end|>\n<|im_start|>assistant\n"
ENDED = "<|im_end|>"
FIRST, NUMBER, REST = 1, 2, 3
"""Kinds of answer tokens: what it begins with, a coordinate, anything else."""

SINK = -1
"""Stands for the token after the image, where a question about an absent target looks."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions about a batch of screens.

    Attributes:
        ids: (B, L) tokens, image tokens as placeholders.
        image: where the image tokens are in each sequence.
        positions: (3, B, L) M-RoPE positions, as if each question came straight after the image.
        mask: (B, 1, L, L), True where a token may look.
        target: (B, L) the next token of an answer, or -100.
        kind: (B, L) kind of that token, 0 where there is none.
        probe: (B, Q) index of each question's label token.
        aim: (B, Q, L) True on the tokens that the label token should look at.
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
        tensors = (self.positions, self.mask, self.target, self.kind, self.probe, self.aim)
        return Questions(self.ids.to(device), self.image, *(one.to(device) for one in tensors))


@dataclass(frozen=True, slots=True)
class _Question:
    """One question: its tokens to the end of the answer, and where in them what is.

    Attributes:
        answer: index of the first token of the answer.
        label: index of the label token.
        cells: cells that the label token should look at; `SINK` for an absent target.
    """

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
        self._numbers = [self.ids(str(number))[0] for number in range(1001)]

    def ids(self, text: str) -> list[int]:
        """Tokens of a text."""
        if text not in self._known:
            self._known[text] = self._words.encode(text).ids
        return self._known[text]

    def ask(
        self,
        scene: Scenes,
        generator: np.random.Generator,
        count: int,
        *,
        absent: float,
        listing: bool,
    ) -> Questions:
        """`count` questions on each screen, a share `absent` of them about what is not there.

        Args:
            scene: the screens, of one size.
            generator: draws the questions.
            count: questions a screen.
            absent: share of questions whose target is not there.
            listing: whether to ask for all the buttons besides.
        """
        asked = []
        for screen in scene.screens:
            questions = [self._one(screen, generator, absent) for _ in range(count)]
            asked.append([*questions, self._list(screen)] if listing else questions)
        return self._pack(asked, scene.screens[0].size)

    def _one(self, screen: Screen, generator: np.random.Generator, absent: float) -> _Question:
        target = TARGETS[generator.integers(len(TARGETS))]
        if generator.random() < absent:
            missing = screen.absent()
            prompt, label = self._prompt(target.format(missing[generator.integers(len(missing))]))
            return _Question(prompt + self.ids("[]") + self.ids(ENDED), len(prompt), label, [SINK])
        button = screen.buttons[generator.integers(len(screen.buttons))]
        prompt, label = self._prompt(target.format(button.text))
        row, here = button_cells(button.box)
        columns = screen.size[0] // CELL
        cells = [row * columns + column for column in range(here.start, min(here.stop, columns))]
        answer = self._answer([scaled(button.box, screen.size)])
        return _Question(prompt + answer, len(prompt), label, cells)

    def _prompt(self, target: str) -> tuple[list[int], int]:
        prompt = self.ids(ASKING.format(target=target)) + self.ids(ASIDE)
        return prompt, next(at for at, token in enumerate(prompt) if token in self._labels)

    def _list(self, screen: Screen) -> _Question:
        prompt = self.ids(LISTING) + self.ids(ASIDE)
        answer = self._answer([scaled(button.box, screen.size) for button in screen.buttons])
        return _Question(prompt + answer, len(prompt), 0, [])

    def _answer(self, boxes: list[Box]) -> list[int]:
        """Tokens of an answer with these boxes, to its end."""
        ids: list[int] = []
        for index, box in enumerate(boxes):
            ids += self.ids(',{"bbox_2d":[' if index else '[{"bbox_2d":[')
            for place, value in enumerate(box):
                ids += (self.ids(",") if place else []) + self.ids(str(value))
            ids += self.ids('],"label":"button"}')
        return ids + self.ids("]") + self.ids(ENDED)

    def _pack(self, asked: list[list[_Question]], size: tuple[int, int]) -> Questions:
        opening = self.ids(OPENING)
        columns, rows = size[0] // CELL, size[1] // CELL
        image = slice(len(opening), len(opening) + rows * columns)
        length = image.stop + 1 + max(sum(len(one.ids) - 1 for one in row) for row in asked)
        sheet = _Sheet(len(asked), max(map(len, asked)), length)
        sheet.begin(opening, image, self.ids("<|image_pad|>")[0], self.ids("<|vision_end|>")[0])
        after = sheet.place_image(image, rows, columns)
        for row, questions in enumerate(asked):
            cursor = image.stop + 1
            for index, question in enumerate(questions):
                sheet.write(row, index, question, slice(cursor, cursor + len(question.ids) - 1))
                sheet.aim_at(row, index, question, image)
                cursor += len(question.ids) - 1
        sheet.positions[:, :, image.stop] = after
        sheet.positions[:, :, image.stop + 1 :] += after + 1
        sheet.kind[np.isin(sheet.target, self._numbers)] = NUMBER
        return sheet.questions(image)


class _Sheet:
    """The arrays of a batch while they are filled; `part` is 0 for what all questions see."""

    def __init__(self, batch: int, many: int, length: int) -> None:
        self.ids = np.zeros((batch, length), np.int64)
        self.positions = np.zeros((3, batch, length), np.int64)
        self.target = np.full((batch, length), IGNORED)
        self.kind = np.zeros((batch, length), np.int64)
        self.part = np.full((batch, length), -1)
        self.probe = np.zeros((batch, many), np.int64)
        self.aim = np.zeros((batch, many, length), bool)

    def begin(self, opening: list[int], image: slice, pad: int, end: int) -> None:
        """What every sequence begins with."""
        self.ids[:, : len(opening)] = opening
        self.ids[:, image] = pad
        self.ids[:, image.stop] = end
        self.part[:, : image.stop + 1] = 0

    def place_image(self, image: slice, rows: int, columns: int) -> int:
        """Positions up to the image; returns the first position after it."""
        start = image.start
        self.positions[:, :, :start] = np.arange(start)
        self.positions[0, :, image] = start
        self.positions[1, :, image] = start + np.repeat(np.arange(rows), columns)
        self.positions[2, :, image] = start + np.tile(np.arange(columns), rows)
        return int(start + max(rows, columns))

    def write(self, row: int, index: int, question: _Question, span: slice) -> None:
        """One question; positions count from its first token."""
        tokens = np.array(question.ids)
        self.ids[row, span] = tokens[:-1]
        self.positions[:, row, span] = np.arange(len(tokens) - 1)
        self.part[row, span] = index + 1
        told = slice(span.start + question.answer - 1, span.stop)
        self.target[row, told] = tokens[question.answer :]
        self.kind[row, told] = REST
        self.kind[row, told.start] = FIRST
        self.probe[row, index] = span.start + question.label

    def aim_at(self, row: int, index: int, question: _Question, image: slice) -> None:
        """Where the label token of a question should look."""
        for cell in question.cells:
            self.aim[row, index, image.stop if cell == SINK else image.start + cell] = True

    def questions(self, image: slice) -> Questions:
        """The batch as tensors."""
        part = torch.from_numpy(self.part)
        length = part.shape[1]
        mask = (part[:, :, None] == part[:, None, :]) | (part[:, None, :] == 0)
        mask &= torch.tril(torch.ones(length, length, dtype=torch.bool))
        mask |= torch.eye(length, dtype=torch.bool)  # so that padding looks at something
        arrays = (self.target, self.kind, self.probe, self.aim)
        return Questions(
            torch.from_numpy(self.ids),
            image,
            torch.from_numpy(self.positions),
            mask[:, None],
            *(torch.from_numpy(array) for array in arrays),
        )
