"""What training minimises: the dense heads on the vision side, and the questions on the text side.

The heads exist only while training. They speak the language of the token embeddings (a label's
logits are products with the embeddings of the label tokens, a coordinate's with those of the
numbers), so what the vision tower learns from them is what the text side can read.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from pipeline.nano.labels import LABELS
from pipeline.nano.lessons import Scenes
from pipeline.nano.questions import FIRST, NUMBER, REST, Questions
from pipeline.nano.screens import GLYPHS
from pipeline.nano.tokenizer import LARGEST_NUMBER

LETTER_NOISE = 0.05
"""Share of the empty patches that are asked for their letters too."""


class TrainingHeads(nn.Module):
    """Linear heads on the merged tokens (label, box, ground) and on the first block (letters)."""

    def __init__(self, words: Tokenizer, hidden: int, vision_hidden: int) -> None:
        super().__init__()
        self.label = nn.Linear(hidden, hidden)
        self.box = nn.Linear(hidden, 4 * hidden)
        self.ground = nn.Linear(hidden, 1)
        self.chars = nn.Linear(vision_hidden, 2 * len(GLYPHS))
        labels = [words.encode(text).ids[0] for text in LABELS]
        numbers = [words.encode(str(number)).ids[0] for number in range(LARGEST_NUMBER + 1)]
        self.label_ids = nn.Buffer(torch.tensor(labels), persistent=False)
        self.number_ids = nn.Buffer(torch.tensor(numbers), persistent=False)


@dataclass(frozen=True, slots=True)
class Report:
    """A loss to minimise and figures to print, all scalars."""

    loss: Tensor
    figures: dict[str, float]


def vision_loss(
    heads: TrainingHeads, table: Tensor, seen: tuple[Tensor, Tensor], scene: Scenes
) -> Report:
    """Loss of the dense heads.

    Args:
        heads: the heads.
        table: the token embeddings (vocabulary, hidden).
        seen: what `swift.see` returned for the pixels of `scene`.
        scene: the screens with what is on them.
    """
    merged, early = seen[0].flatten(0, 1), seen[1].flatten(0, 1)
    merged = merged * torch.rsqrt(merged.pow(2).mean(-1, keepdim=True) + 1e-6)
    label, box = scene.label.flatten(), scene.box.flatten(0, 1)
    known, on = label >= 0, (label >= 0) & (label < len(LABELS))
    ground = functional.binary_cross_entropy_with_logits(
        heads.ground(merged[known])[:, 0], on[known].float()
    )
    said = heads.label(merged[on]) @ table[heads.label_ids].T
    labels = functional.cross_entropy(said, label[on])
    boxes, right = _box_loss(heads, table, merged[on], box[on])
    letters = _letter_loss(heads, early, scene.letters.flatten(0, 1))
    figures = {
        "label": labels.item(),
        "label_acc": (said.argmax(-1) == label[on]).float().mean().item(),
        "box_acc": right,
        "letters": letters.item(),
        "ground": ground.item(),
    }
    return Report(ground + labels + boxes + letters, figures)


def _box_loss(
    heads: TrainingHeads, table: Tensor, merged: Tensor, box: Tensor
) -> tuple[Tensor, float]:
    """Cross-entropy among the numbers that occur in the batch: a thousand would cost too much."""
    used, target = torch.unique(box, return_inverse=True)
    said = heads.box(merged).view(-1, 4, table.shape[1]) @ table[heads.number_ids[used]].T
    loss = functional.cross_entropy(said.flatten(0, 1), target.flatten())
    return loss, (said.argmax(-1) == target).float().mean().item()


def _letter_loss(heads: TrainingHeads, early: Tensor, letters: Tensor) -> Tensor:
    asked = (letters > 0).any(-1) | (torch.rand(len(letters), device=letters.device) < LETTER_NOISE)
    said = heads.chars(early[asked]).view(-1, 2, len(GLYPHS))
    return functional.cross_entropy(said.flatten(0, 1), letters[asked].flatten())


def answer_loss(table: Tensor, hidden: Tensor, looked: Tensor, questions: Questions) -> Report:
    """Loss of the answers' tokens and of pointing at the asked button's cells.

    Args:
        table: the token embeddings, which are the output layer too.
        hidden: final hidden states (B, L, hidden).
        looked: attention logits (B, Q, L) of `swift.read`.
        questions: what was asked.
    """
    aimed = questions.aim.any(-1)
    there = torch.logsumexp(torch.log_softmax(looked, -1).masked_fill(~questions.aim, -1e9), -1)[
        aimed
    ]
    told = questions.target >= 0
    target, kind = questions.target[told], questions.kind[told]
    logits = hidden[told] @ table.T
    losses = functional.cross_entropy(logits, target, reduction="none")
    right = (logits.argmax(-1) == target).float()
    first, number, rest = (losses[kind == which].mean() for which in (FIRST, NUMBER, REST))
    figures = {
        "point": there.exp().mean().item(),
        "first_acc": right[kind == FIRST].mean().item(),
        "coord": number.item(),
        "coord_acc": right[kind == NUMBER].mean().item(),
        "rest_acc": right[kind == REST].mean().item(),
    }
    return Report(number + first + 0.5 * rest - there.mean(), figures)
