"""Ask nano through real vLLM about screens it never saw: `python -m pipeline.nano.evaluate`.

Everything between question and figure is the pipeline's own: profile, engine, parser, geometry.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.nano.checkpoint import ensure_checkpoint
from pipeline.nano.prompts import TARGETS
from pipeline.nano.screens import HARDER, PLAIN, Screen, Split, draw_screen
from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import Box, FrameKind, SeenImage, Size
from schemas.profile import ModelProfile
from schemas.records import Completion, Parsed
from transforms.compose import prompt_text
from transforms.engines.base import Engine, EngineRequest
from transforms.evaluate import match_count
from transforms.parse import parse_answer
from transforms.profiles.load import load_profile

SPLITS = {"plain": PLAIN, "harder": HARDER}
ABSENT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: about the button with `truth`, or an absent one, or all (`listing`)."""

    screen: int
    instruction: str
    truth: tuple[Box, ...]
    listing: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """How the answers of one split compare with the truth; all shares 0-1.

    Attributes:
        hits: share of the present targets whose answered centre lies in the true box.
        iou: mean IoU over the present targets, 0 where no box was answered.
        false_absent: share of the present targets called absent.
        absent: share of the absent targets called absent.
        listing_f1: F1 of all listed boxes at IoU 0.5.
        malformed: answers that hold no usable geometry and do not say "absent".
        per_second: questions answered a second, after the first.
    """

    screens: int
    questions: int
    hits: float
    iou: float
    false_absent: float
    absent: float
    listing_f1: float
    malformed: int
    per_second: float


def questions(screens: list[Screen], seed: int = 0, a_screen: int = 8) -> list[Asked]:
    """Eight questions a screen, a quarter of them about absent labels, and one for the list."""
    generator = np.random.default_rng([seed, 13])
    asked = []
    for index, screen in enumerate(screens):
        missing = screen.absent()
        for _ in range(a_screen):
            target = TARGETS[generator.integers(len(TARGETS))]
            if generator.random() < ABSENT_SHARE:
                text = missing[generator.integers(len(missing))]
                asked.append(Asked(index, target.format(text), ()))
            else:
                button = screen.buttons[generator.integers(len(screen.buttons))]
                asked.append(Asked(index, target.format(button.text), (Box(*button.box),)))
        boxes = tuple(Box(*button.box) for button in screen.buttons)
        asked.append(Asked(index, "", boxes, listing=True))
    return asked


def kind_of(asked: Asked) -> QueryKind:
    """The task a question belongs to."""
    return QueryKind.LOCALIZATION if asked.listing else QueryKind.GROUNDING


def request(profile: ModelProfile, screen: Screen, asked: Asked, key: str) -> EngineRequest:
    """The engine request of a question, made as the pipeline makes it."""
    task = profile.tasks[kind_of(asked)]
    return EngineRequest(
        request_id=key,
        image=screen.image(),
        image_key=hashlib.sha256(screen.pixels.tobytes()).hexdigest(),
        prompt=prompt_text(task, asked.instruction),
        system=task.system,
        n=1,
        sampling=profile.greedy,
        max_tokens=task.max_tokens,
        seed=0,
        json_schema=json.dumps(task.json_schema) if task.structured else None,
        chat_template_kwargs="{}",
    )


def completions(
    engine: Engine, profile: ModelProfile, screens: list[Screen], asked: list[Asked]
) -> list[Completion]:
    """The engine's answers in the order of the questions."""
    waiting: set[str] = set()
    found: dict[str, Completion] = {}
    for index, question in enumerate(asked):
        key = f"{question.screen}/{index}"
        engine.submit(request(profile, screens[question.screen], question, key))
        waiting.add(key)
        if len(waiting) >= engine.info.max_in_flight:
            _collect(engine, waiting, found)
    while waiting:
        _collect(engine, waiting, found)
    return [found[f"{question.screen}/{index}"] for index, question in enumerate(asked)]


def read(screens: list[Screen], asked: list[Asked], said: list[Completion]) -> list[Parsed]:
    """Parse the answers with the pipeline's own parser."""
    return [
        parse_answer(
            completion.text,
            completion.finish_reason,
            "qwen_json",
            FrameKind.NORM_1000,
            SeenImage.unchanged(Size(*screens[question.screen].size)),
        )
        for question, completion in zip(asked, said, strict=True)
    ]


def _collect(engine: Engine, waiting: set[str], found: dict[str, Completion]) -> None:
    for answer in engine.collect():
        found[answer.request_id] = answer.completions[0]
        waiting.discard(answer.request_id)


def figures(asked: list[Asked], parsed: Iterable[Parsed], screens: int, spent: float) -> Figures:
    """Compare answers with the truth."""
    pairs = list(zip(asked, parsed, strict=True))
    single = [(one.truth, answer) for one, answer in pairs if not one.listing]
    present = [(truth[0], answer) for truth, answer in single if truth]
    absent = [answer for truth, answer in single if not truth]
    lists = [(one.truth, _boxes(answer)) for one, answer in pairs if one.listing]
    matched = sum(match_count(found, true) for true, found in lists)
    counted = sum(len(true) + len(found) for true, found in lists)
    usable = (SampleStatus.OK, SampleStatus.ABSENT)
    return Figures(
        screens=screens,
        questions=len(pairs),
        hits=_mean(
            any(truth.contains(box.center) for box in _boxes(a)[:1]) for truth, a in present
        ),
        iou=_mean(
            max((truth.iou(box) for box in _boxes(a)[:1]), default=0.0) for truth, a in present
        ),
        false_absent=_mean(answer.status is SampleStatus.ABSENT for _, answer in present),
        absent=_mean(answer.status is SampleStatus.ABSENT for answer in absent),
        listing_f1=2 * matched / max(counted, 1),
        malformed=sum(answer.status not in usable for _, answer in pairs),
        per_second=len(pairs) / max(spent, 1e-9),
    )


def _boxes(parsed: Parsed) -> list[Box]:
    return [item.box for item in parsed.items if item.box is not None]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / max(len(listed), 1)


def evaluate(engine: Engine, profile: ModelProfile, split: Split, seeds: range) -> Figures:
    """Figures of one split on the screens of these seeds."""
    screens = [draw_screen(seed, split) for seed in seeds]
    asked = questions(screens)
    started = time.monotonic()
    said = completions(engine, profile, screens, asked)
    spent = time.monotonic() - started
    return figures(asked, read(screens, asked, said), len(screens), spent)


def main() -> None:
    """Print the figures of both splits."""
    from transforms.engines.vllm import start_vllm
    from transforms.engines.vllm_settings import vllm_settings

    parser = argparse.ArgumentParser(description="Evaluate nano through vLLM on held-out screens.")
    parser.add_argument("--checkpoint", type=Path, default=None)
    parser.add_argument("--screens", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=500_000)
    options = parser.parse_args()
    folder = options.checkpoint or ensure_checkpoint()
    profile = load_profile("nano")
    started = time.monotonic()
    engine = start_vllm(vllm_settings(profile, str(folder), name="nano"))
    try:
        evaluate(engine, profile, PLAIN, range(options.first_seed - 1, options.first_seed))
        print(f"load to first answers: {time.monotonic() - started:.1f} s")
        for name, split in SPLITS.items():
            seeds = range(options.first_seed, options.first_seed + options.screens)
            print(name, evaluate(engine, profile, split, seeds), flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    main()
