"""Nano through real vLLM on screens it never saw: right, and wrong as soon as a thing is broken."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline.nano import evaluate
from pipeline.nano.checkpoint import ensure_checkpoint
from pipeline.nano.evaluate import Asked, Figures, completions, figures, questions, read
from pipeline.nano.screens import HARDER, PLAIN, Screen, Split, draw_screen
from schemas.geometry import Box, FrameKind, SeenImage, Size
from schemas.records import Completion, Item, Parsed
from transforms.compose import prompt_text
from transforms.engines.base import Engine
from transforms.engines.vllm import start_vllm
from transforms.engines.vllm_settings import vllm_settings
from transforms.parse import parse_answer
from transforms.profiles.load import load_profile

pytestmark = pytest.mark.vllm

PROFILE = load_profile("nano")
HELD_OUT = range(700_000, 700_024)
OBLONG = replace(PLAIN, sizes=((320, 160), (192, 256)))
"""Sizes whose sides differ, so that axes and frames cannot be mistaken unnoticed."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = start_vllm(vllm_settings(PROFILE, str(ensure_checkpoint()), name="nano"))
    yield started
    started.close()


class Session:
    """Screens, questions and what the engine said to them."""

    def __init__(self, engine: Engine, split: Split) -> None:
        self.screens = [draw_screen(seed, split) for seed in HELD_OUT]
        self.asked = questions(self.screens)
        self.said = completions(engine, PROFILE, self.screens, self.asked)

    def figures(self, parsed: list[Parsed]) -> Figures:
        return figures(self.asked, parsed, len(self.screens), 1.0)

    def parsed(self, frame: FrameKind = FrameKind.NORM_1000) -> list[Parsed]:
        return [
            parse_answer(
                said.text, said.finish_reason, "qwen_json", frame,
                SeenImage.unchanged(Size(*self.screens[asked.screen].size)),
            )
            for asked, said in zip(self.asked, self.said, strict=True)
        ]  # fmt: skip


@pytest.fixture(scope="module")
def plain(engine: Engine) -> Session:
    return Session(engine, PLAIN)


@pytest.fixture(scope="module")
def oblong(engine: Engine) -> Session:
    return Session(engine, OBLONG)


def test_plain_screens_are_grounded(plain: Session) -> None:
    reached = plain.figures(read(plain.screens, plain.asked, plain.said))
    assert reached.hits >= 0.95
    assert reached.iou >= 0.8
    assert reached.absent >= 0.9
    assert reached.false_absent <= 0.05
    assert reached.listing_f1 >= 0.9
    assert reached.malformed == 0


def test_harder_screens_are_a_mixture(engine: Engine) -> None:
    harder = Session(engine, HARDER)
    assert 0.3 <= harder.figures(harder.parsed()).hits <= 0.9


def test_the_frame_is_0_to_1000(oblong: Session) -> None:
    assert oblong.figures(oblong.parsed()).hits >= 0.95
    assert oblong.figures(oblong.parsed(FrameKind.SEEN_PX)).hits <= 0.2


def swapped(item: Item) -> Item:
    assert item.box is not None
    x1, y1, x2, y2 = item.box.corners
    return replace(item, box=Box(y1, x1, y2, x2))


def test_swapped_axes_are_noticed(oblong: Session) -> None:
    broken = [
        replace(parsed, items=tuple(swapped(item) for item in parsed.items))
        for parsed in oblong.parsed()
    ]
    assert oblong.figures(broken).hits <= 0.3


def test_padding_that_is_not_undone_is_noticed(engine: Engine) -> None:
    # A screen of 256x192 set low on a canvas of 256x256: both are sizes nano knows.
    small = [draw_screen(seed, replace(PLAIN, sizes=((256, 192),))) for seed in HELD_OUT]
    padded = [
        Screen(np.concatenate([np.repeat(one.pixels[:1], 64, axis=0), one.pixels]), one.buttons)
        for one in small
    ]
    asked = [one for one in questions(small) if one.truth and not one.listing]
    said = completions(engine, PROFILE, padded, asked)
    chain = SeenImage.unchanged(Size(256, 192)).placed(Size(256, 256), 0, 64)
    wrong = SeenImage.unchanged(Size(256, 192))
    assert hits(asked, said, chain) >= 0.9
    assert hits(asked, said, wrong) <= 0.3


def hits(asked: list[Asked], said: list[Completion], seen: SeenImage) -> float:
    parsed = [
        parse_answer(one.text, one.finish_reason, "qwen_json", FrameKind.NORM_1000, seen)
        for one in said
    ]
    return figures(asked, parsed, 1, 1.0).hits


def test_hugging_face_says_the_same(plain: Session) -> None:
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    folder = ensure_checkpoint()
    processor = AutoProcessor.from_pretrained(folder)
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    same = []
    for asked, said in list(zip(plain.asked, plain.said, strict=True))[:36]:
        kind = evaluate.kind_of(asked)
        prompt = prompt_text(PROFILE.tasks[kind], asked.instruction)
        image = plain.screens[asked.screen].image()
        content = [{"type": "image", "image": image}, {"type": "text", "text": prompt}]
        text = processor.tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )
        inputs = processor(text=[text], images=[image], return_tensors="pt")
        with torch.no_grad():
            told = model.generate(**inputs, max_new_tokens=100, do_sample=False)
        text = processor.decode(told[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        same.append(text == said.text)
    assert np.mean(same) >= 0.95
