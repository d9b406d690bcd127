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
from pipeline.nano.screens import CELL, Box, Button, Screen

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OPENING = "<|im_start|>user\n<|vision_start|>"
ASIDE = "<|im_end|>\n<|im_start|>assistant\n"
ENDED = "<|im_end|>"
FIRST, NUMBER, REST = 1, 2, 3
"""Kinds of answer tokens: what it begins with, a coordinate, anything else."""

ITEM = 9
"""Tokens of one element of an answer."""


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
        aim: (4, B, L, L) True from a token to those it should look at, in each text layer:
            in the first from a label to its cells, in the second from the tokens of an answer to
            the label asked for, in the third from the start of a listed item to its cells, in the
            fourth from the tokens of a listed item to its start.
        known: (2, B, L, 4) the box a token should know: a label after the first layer, the start
            of a listed item after the third; -100 elsewhere.
        rank: (B, L) place in reading order of the button of a cell, and of a listed item at its
            start, to be known after the second layer; -100 elsewhere.
    """

    ids: Tensor
    image: slice
    positions: Tensor
    mask: Tensor
    target: Tensor
    kind: Tensor
    aim: Tensor
    known: Tensor
    rank: Tensor

    def to(self, device: str) -> Questions:
        """The same on a device."""
        tensors = (self.positions, self.mask, self.target, self.kind)
        more = (self.aim, self.known, self.rank)
        return Questions(
            self.ids.to(device), self.image, *(one.to(device) for one in (*tensors, *more))
        )


@dataclass(frozen=True, slots=True)
class _Question:
    """One question: its tokens to the end of the answer, and where in them what is.

    Attributes:
        answer: index of the first token of the answer.
        label: index of the label token; None in a question for all buttons.
        boxes: boxes of the answer in 0-1000, in order.
        cells: for each box the cells it covers.
    """

    ids: list[int]
    answer: int
    label: int | None
    boxes: list[Box]
    cells: list[list[int]]

    def item(self, index: int) -> slice:
        """Tokens that a box's four numbers are predicted at: its start and three commas."""
        start = self.answer + index * ITEM
        return slice(start, start + 7, 2)


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
            return _Question(prompt + self.ids("[]") + self.ids(ENDED), len(prompt), label, [], [])
        button = screen.buttons[generator.integers(len(screen.buttons))]
        prompt, label = self._prompt(target.format(button.text))
        return self._answered(prompt, label, screen, (button,))

    def _prompt(self, target: str) -> tuple[list[int], int]:
        prompt = self.ids(ASKING.format(target=target)) + self.ids(ASIDE)
        return prompt, next(at for at, token in enumerate(prompt) if token in self._labels)

    def _list(self, screen: Screen) -> _Question:
        prompt = self.ids(LISTING) + self.ids(ASIDE)
        return self._answered(prompt, None, screen, screen.buttons)

    def _answered(
        self, prompt: list[int], label: int | None, screen: Screen, buttons: tuple[Button, ...]
    ) -> _Question:
        boxes = [scaled(button.box, screen.size) for button in buttons]
        cells = [covered(button, screen) for button in buttons]
        return _Question(prompt + self._answer(boxes), len(prompt), label, boxes, cells)

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
        sheet = _Sheet(len(asked), length, image)
        sheet.begin(opening, self.ids("<|image_pad|>")[0], self.ids("<|vision_end|>")[0])
        after = sheet.place_image(rows, columns)
        for row, questions in enumerate(asked):
            cursor = image.stop + 1
            for index, question in enumerate(questions):
                sheet.write(row, index, question, slice(cursor, cursor + len(question.ids) - 1))
                sheet.guide(row, question, cursor)
                cursor += len(question.ids) - 1
        sheet.positions[:, :, image.stop] = after
        sheet.positions[:, :, image.stop + 1 :] += after + 1
        sheet.kind[np.isin(sheet.target, self._numbers)] = NUMBER
        return sheet.questions()


def covered(button: Button, screen: Screen) -> list[int]:
    """Indices of the cells under a button's line of text."""
    columns = screen.size[0] // CELL
    row, here = button_cells(button.box)
    return [row * columns + column for column in range(here.start, min(here.stop, columns))]


class _Sheet:
    """The arrays of a batch while they are filled; `part` is 0 for what all questions see."""

    def __init__(self, batch: int, length: int, image: slice) -> None:
        self.image = image
        self.ids = np.zeros((batch, length), np.int64)
        self.positions = np.zeros((3, batch, length), np.int64)
        self.target = np.full((batch, length), IGNORED)
        self.kind = np.zeros((batch, length), np.int64)
        self.part = np.full((batch, length), -1)
        self.aim = np.zeros((4, batch, length, length), bool)
        self.known = np.full((2, batch, length, 4), IGNORED)
        self.rank = np.full((batch, length), IGNORED)

    def begin(self, opening: list[int], pad: int, end: int) -> None:
        """What every sequence begins with."""
        self.ids[:, : len(opening)] = opening
        self.ids[:, self.image] = pad
        self.ids[:, self.image.stop] = end
        self.part[:, : self.image.stop + 1] = 0

    def place_image(self, rows: int, columns: int) -> int:
        """Positions up to the image; returns the first position after it."""
        image, start = self.image, self.image.start
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

    def guide(self, row: int, question: _Question, cursor: int) -> None:
        """Where the tokens of a question should look, and what they should know."""
        if question.label is None:
            self._guide_list(row, question, cursor)
            return
        label = cursor + question.label
        self.aim[0, row, label, self.image.stop] = not question.boxes
        for box, cells in zip(question.boxes, question.cells, strict=True):
            self.aim[0, row, label, self._places(cells)] = True
            self.known[0, row, label] = box
            here = question.item(0)
            self.aim[1, row, cursor + here.start : cursor + here.stop : here.step, label] = True

    def _guide_list(self, row: int, question: _Question, cursor: int) -> None:
        for index, (box, cells) in enumerate(zip(question.boxes, question.cells, strict=True)):
            here = question.item(index)
            start = cursor + here.start
            self.aim[2, row, start, self._places(cells)] = True
            self.aim[3, row, start : cursor + here.stop : here.step, start] = True
            self.known[1, row, start] = box
            self.rank[row, start] = index
            self.rank[row, self._places(cells)] = index

    def _places(self, cells: list[int]) -> list[int]:
        return [self.image.start + cell for cell in cells]

    def questions(self) -> Questions:
        """The batch as tensors."""
        part = torch.from_numpy(self.part)
        length = part.shape[1]
        mask = (part[:, :, None] == part[:, None, :]) | (part[:, None, :] == 0)
        mask &= torch.tril(torch.ones(length, length, dtype=torch.bool))
        mask |= torch.eye(length, dtype=torch.bool)  # so that padding looks at something
        arrays = (self.target, self.kind, self.aim, self.known, self.rank)
        return Questions(
            torch.from_numpy(self.ids),
            self.image,
            torch.from_numpy(self.positions),
            mask[:, None],
            *(torch.from_numpy(array) for array in arrays),
        )
