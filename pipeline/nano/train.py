"""Train nano from nothing: `python -m pipeline.nano.train --out FOLDER`.

Three stages, each with its own screens and questions (`STAGES`). The state is written every
hundred steps and at the end of a stage; the same command goes on from it. A plain Qwen3-VL
checkpoint is written beside it at the end, or with `--export` from the state that is there.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import clip_grad_norm_

from pipeline.nano import checkpoint, swift, tokenizer
from pipeline.nano.lessons import Scenes, scenes
from pipeline.nano.losses import Report, TrainingHeads, answer_loss, vision_loss
from pipeline.nano.model import new_model
from pipeline.nano.questions import Asker, Questions
from pipeline.nano.screens import HARDER, PLAIN, Split

FIRST_SEED = 1_000_000
"""Screens below this seed are never trained on: evaluation, tests and the probe have them."""

SAVE_EVERY = 100


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of steps of one kind.

    Attributes:
        split: the screens; each step draws one of its sizes.
        batch: screens a step.
        questions: questions a screen; 0 trains the vision side alone.
        absent: share of the questions whose target is not there.
        listing: whether each screen is also asked for all its buttons.
        rate: the learning rate after the warm-up.
        final_rate: what it falls to along a cosine by the end of the stage.
        frozen: whether the vision side only looks on.
        rough: share of the steps whose screens come from `rough_split`.
    """

    name: str
    steps: int
    split: Split
    batch: int
    questions: int
    absent: float
    listing: bool
    rate: float
    final_rate: float
    rough: float = 0.0
    rough_split: Split = PLAIN
    warm_up: int = 40
    frozen: bool = False


ONE_SIZE = replace(PLAIN, sizes=PLAIN.sizes[:1])
STAGES = (
    Stage("see", 900, ONE_SIZE, 16, 0, 0.0, False, 2e-3, 1e-3),
    Stage("sizes", 520, PLAIN, 16, 0, 0.0, False, 1e-3, 1e-4, 0.3, HARDER),
    Stage("ask", 760, PLAIN, 8, 6, 0.25, True, 2e-3, 5e-4, 0.1, HARDER, frozen=True),
    Stage("polish", 320, PLAIN, 8, 6, 0.25, True, 7e-4, 2e-5, 0.2, HARDER),
)


class Trainer:
    """The model, its training heads and the optimiser, with the step they are at."""

    def __init__(self, device: str) -> None:
        self.words = tokenizer.build_tokenizer()
        self.device = device
        self.model = new_model(self.words).to(device)
        config = self.model.config
        self.heads = TrainingHeads(
            self.words, config.text_config.hidden_size, config.vision_config.hidden_size
        ).to(device)
        self.asker = Asker(self.words)
        self.weights = [
            weight
            for weight in (*self.model.parameters(), *self.heads.parameters())
            if weight.requires_grad
        ]
        self.step = 0
        self.restart()

    def restart(self) -> None:
        """A fresh optimiser: averages from a stage with smaller gradients would make it leap."""
        self.optimiser = torch.optim.AdamW(
            self.weights, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01
        )

    def save(self, path: Path) -> None:
        """Write the state; a kill in between leaves the one before."""
        draft = path.with_suffix(".part")
        state = {
            "model": self.model.state_dict(),
            "heads": self.heads.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
        }
        torch.save(state, draft)
        draft.replace(path)

    def load(self, path: Path) -> None:
        """Go on from a state that `save` wrote."""
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.heads.load_state_dict(state["heads"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]

    def losses(self, stage: Stage, scene: Scenes, generator: np.random.Generator) -> Report:
        """The loss of one batch and the figures to print."""
        table = self.model.model.language_model.embed_tokens.weight
        with torch.set_grad_enabled(torch.is_grad_enabled() and not stage.frozen):
            seen = swift.see(self.model, scene.pixels.to(self.device))
            report = vision_loss(self.heads, table, seen, scene.to(self.device))
        if stage.questions == 0:
            return report
        asked = self.asker.ask(
            scene, generator, stage.questions, absent=stage.absent, listing=stage.listing
        ).to(self.device)
        answers = answer_loss(self.heads, table, self._read(seen[0], asked), asked)
        return Report(report.loss + answers.loss, report.figures | answers.figures)

    def _read(self, merged: torch.Tensor, asked: Questions) -> swift.Reading:
        embedded = self.model.model.language_model.embed_tokens(asked.ids)
        embedded = torch.cat(
            [embedded[:, : asked.image.start], merged, embedded[:, asked.image.stop :]], 1
        )
        return swift.read(self.model, embedded, asked.positions, asked.mask)

    def learn(self, stage: Stage, done: int) -> Report:
        """One step: step `done` of the stage."""
        for group in self.optimiser.param_groups:
            group["lr"] = _rate(stage, done)
        generator = np.random.default_rng([self.step, 11])
        split = stage.rough_split if generator.random() < stage.rough else stage.split
        size = split.sizes[generator.integers(len(split.sizes))]
        start = FIRST_SEED + self.step * 64
        scene = scenes(range(start, start + stage.batch), replace(split, sizes=(size,)))
        report = self.losses(stage, scene, generator)
        self.optimiser.zero_grad()
        report.loss.backward()
        clip_grad_norm_([weight for weight in self.weights if weight.grad is not None], 1.0)
        self.optimiser.step()
        self.step += 1
        return report

    def examine(self, stage: Stage, seeds: range = range(32)) -> dict[str, float]:
        """The same figures on screens that are never trained on, meaned over the stage's sizes."""
        sums: dict[str, float] = {}
        for size in stage.split.sizes:
            scene = scenes(seeds, replace(stage.split, sizes=(size,)))
            with torch.no_grad():
                figures = self.losses(stage, scene, np.random.default_rng(5)).figures
            for name, value in figures.items():
                sums[name] = sums.get(name, 0.0) + value / len(stage.split.sizes)
        return sums


def _rate(stage: Stage, done: int) -> float:
    fall = 0.5 + 0.5 * math.cos(math.pi * done / stage.steps)
    rate = stage.final_rate + (stage.rate - stage.final_rate) * fall
    return rate * min(1.0, (done + 1) / stage.warm_up)


def train(folder: Path, stages: tuple[Stage, ...], device: str) -> Trainer:
    """Run the stages from where the state in `folder` is."""
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state.pt"
    trainer = Trainer(device)
    if state.exists():
        trainer.load(state)
        print(f"going on from step {trainer.step}", flush=True)
    begin = 0
    for stage in stages:
        _run_stage(trainer, stage, begin, state)
        begin += stage.steps
    return trainer


def _run_stage(trainer: Trainer, stage: Stage, begin: int, state: Path) -> None:
    started = time.monotonic()
    if trainer.step == begin:
        trainer.restart()
    while trainer.step < begin + stage.steps:
        report = trainer.learn(stage, trainer.step - begin)
        if trainer.step % 20 == 0:
            told = " ".join(f"{name} {value:.3f}" for name, value in report.figures.items())
            spent = time.monotonic() - started
            print(f"{stage.name} {trainer.step} {spent:.0f}s {told}", flush=True)
        if trainer.step % SAVE_EVERY == 0 or trainer.step == begin + stage.steps:
            trainer.save(state)
            told = " ".join(f"{name} {value:.3f}" for name, value in trainer.examine(stage).items())
            print(f"  held out: {told}", flush=True)


def main() -> None:
    """Train, then write the checkpoint."""
    parser = argparse.ArgumentParser(description="Train nano from nothing, or go on.")
    parser.add_argument("--out", type=Path, required=True, help="folder of state and checkpoint")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--export", action="store_true", help="only write the checkpoint")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stages = () if options.export else STAGES
    trainer = train(options.out, stages, device)
    checkpoint.write_checkpoint(options.out / "checkpoint", trainer.words, trainer.model)
    print(f"written to {options.out / 'checkpoint'}")


if __name__ == "__main__":
    main()
