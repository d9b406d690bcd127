"""What eight questions about a screen cost over one, where computing the prompt is what takes time.

`python -m tests.benchmark.questions_speed [--screens 8] [--rounds 3]`. Screens of 1280x800 (about
1,000 tokens of image) and short answers, fed to vLLM as the job feeds it; caches are emptied before
each round, one and eight alternate. `pantalla bench throughput` asks nano about its own small
screens, whose prompts are so short that vLLM's work for a request is most of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections import deque
from statistics import median

from schemas.geometry import Size
from tests.benchmark.render_speed import template
from transforms.engines.base import EngineRequest
from transforms.engines.vllm import VllmEngine
from transforms.engines.vllm_whole import forget_everything
from transforms.probe.scene import draw_scenes

SIZE = Size(1280, 800)


def requests(pattern: EngineRequest, screens: int, questions: int) -> list[EngineRequest]:
    """So many different questions about each of so many screens, those of a screen together."""
    made = []
    for seed in range(screens):
        image = draw_scenes([SIZE], 8, seed)[0].image
        made += [
            dataclasses.replace(
                pattern,
                request_id=f"{seed}-{number}",
                image=image,
                image_key=f"screen-{seed}",
                prompt=f"{pattern.prompt} {number}",
            )
            for number in range(questions)
        ]
    return made


def answered(engine: VllmEngine, asked: list[EngineRequest]) -> tuple[float, float]:
    """Seconds until all are answered, and the share of prompt tokens that was not computed again.

    Raises:
        RuntimeError: if one was not answered.
    """
    forget_everything(engine)
    waiting, answers = deque(asked), []
    began = time.monotonic()
    while len(answers) < len(asked):
        while waiting and len(asked) - len(waiting) - len(answers) < engine.info.max_in_flight:
            engine.submit(waiting.popleft())
        answers += engine.collect()
    seconds = time.monotonic() - began
    failed = [answer for answer in answers if answer.error_reason is not None]
    if failed:
        raise RuntimeError(f"not answered: {failed[0]}")
    prompts = sum(answer.prompt_tokens for answer in answers)
    return seconds, sum(answer.cached_tokens for answer in answers) / prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screens", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    engine, pattern = template()
    try:
        spent: dict[int, list[float]] = {1: [], 8: []}
        for turn in range(options.rounds + 1):
            for questions, found in spent.items():
                seconds, cached = answered(engine, requests(pattern, options.screens, questions))
                found.extend([seconds] if turn else [])  # the first round warms up
                print(f"{questions} questions: {seconds:.2f} s, {cached:.0%} cached", flush=True)
        print(f"eight / one: {median(spent[8]) / median(spent[1]):.2f}")
    finally:
        engine.close()


if __name__ == "__main__":
    main()
