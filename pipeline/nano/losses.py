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
from pipeline.nano.swift import Reading
from pipeline.nano.tokenizer import LARGEST_NUMBER

MOST_BUTTONS = 8
LETTER_NOISE = 0.05
"""Share of the empty patches that are asked for their letters too."""


class TrainingHeads(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """Linear heads on the merged tokens (label, box, ground) and on the first block (letters)."""

    def __init__(self, words: Tokenizer, hidden: int, vision_hidden: int) -> None:
        super().__init__()
        self.label = nn.Linear(hidden, hidden)
        self.box = nn.Linear(hidden, 4 * hidden)
        self.label_box = nn.Linear(hidden, 4 * hidden)
        self.item_box = nn.Linear(hidden, 4 * hidden)
        self.rank = nn.Linear(hidden, MOST_BUTTONS)
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
    merged = _normed(merged)
    label, box = scene.label.flatten(), scene.box.flatten(0, 1)
    known, on = label >= 0, (label >= 0) & (label < len(LABELS))
    ground = functional.binary_cross_entropy_with_logits(
        heads.ground(merged[known])[:, 0], on[known].float()
    )
    said = heads.label(merged[on]) @ table[heads.label_ids].T
    labels = functional.cross_entropy(said, label[on])
    boxes, right = _box_loss(heads, heads.box, table, merged[on], box[on])
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
    heads: TrainingHeads, head: nn.Linear, table: Tensor, states: Tensor, box: Tensor
) -> tuple[Tensor, float]:
    """Cross-entropy among the numbers that occur in the batch: a thousand would cost too much."""
    used, target = torch.unique(box, return_inverse=True)
    said = head(_normed(states)).view(-1, 4, table.shape[1]) @ table[heads.number_ids[used]].T
    loss = functional.cross_entropy(said.flatten(0, 1), target.flatten())
    return loss, (said.argmax(-1) == target).float().mean().item()


def _normed(states: Tensor) -> Tensor:
    return states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + 1e-6)


def _letter_loss(heads: TrainingHeads, early: Tensor, letters: Tensor) -> Tensor:
    asked = (letters > 0).any(-1) | (torch.rand(len(letters), device=letters.device) < LETTER_NOISE)
    said = heads.chars(early[asked]).view(-1, 2, len(GLYPHS))
    return functional.cross_entropy(said.flatten(0, 1), letters[asked].flatten())


def answer_loss(heads: TrainingHeads, table: Tensor, read: Reading, asked: Questions) -> Report:
    """Loss of the answers' tokens, and of the steps that lead to them.

    Args:
        heads: the heads.
        table: the token embeddings, which are the output layer too.
        read: what the text side made of the questions.
        asked: the questions.
    """
    told = asked.target >= 0
    target, kind = asked.target[told], asked.kind[told]
    logits = read.hidden[told] @ table.T
    losses = functional.cross_entropy(logits, target, reduction="none")
    right = (logits.argmax(-1) == target).float()
    first, number, rest = (losses[kind == which].mean() for which in (FIRST, NUMBER, REST))
    guide, figures = _guide_loss(heads, table, read, asked)
    figures |= {
        "first_acc": right[kind == FIRST].mean().item(),
        "coord": number.item(),
        "coord_acc": right[kind == NUMBER].mean().item(),
        "rest_acc": right[kind == REST].mean().item(),
    }
    return Report(number + first + 0.5 * rest + guide, figures)


def _guide_loss(
    heads: TrainingHeads, table: Tensor, read: Reading, asked: Questions
) -> tuple[Tensor, dict[str, float]]:
    """Where tokens look, which box they know, and which rank, each at its layer."""
    total = read.hidden.new_zeros(())
    figures: dict[str, float] = {}
    for layer, (looks, aim) in enumerate(zip(read.looks, asked.aim, strict=True)):
        from_here = aim.any(-1)
        if from_here.any():
            there = _looked_at(looks, aim, from_here)
            figures[f"look{layer}"] = there.exp().mean().item()
            total = total - there.mean()
    for name, layer, head, known in zip(
        ("know", "know_item"), (0, 2), (heads.label_box, heads.item_box), asked.known, strict=True
    ):
        holds = known[..., 0] >= 0
        if holds.any():
            loss, figures[name] = _box_loss(
                heads, head, table, read.layers[layer][holds], known[holds]
            )
            total = total + 0.5 * loss
    ranked = asked.rank >= 0
    if ranked.any():
        said = heads.rank(_normed(read.layers[1][ranked]))
        total = total + 0.5 * functional.cross_entropy(said, asked.rank[ranked])
        figures["rank"] = (said.argmax(-1) == asked.rank[ranked]).float().mean().item()
    return total, figures


def _looked_at(looks: Tensor, aim: Tensor, from_here: Tensor) -> Tensor:
    """Log of the attention that lands where it should: (tokens, guided heads)."""
    spread = torch.log_softmax(looks.transpose(1, 2)[from_here], -1)
    return torch.logsumexp(spread.masked_fill(~aim[from_here][:, None], -1e9), -1)
