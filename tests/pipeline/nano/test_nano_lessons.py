"""What nano learns from: the right answers, and no question that sees another's."""

import json

import numpy as np
import pytest
import torch

from pipeline.nano import swift
from pipeline.nano.labels import LABELS
from pipeline.nano.lessons import Scenes, scenes
from pipeline.nano.model import new_model
from pipeline.nano.questions import Asker, Questions
from pipeline.nano.screens import Split
from pipeline.nano.tokenizer import build_tokenizer

WORDS = build_tokenizer()
SPLIT = Split(sizes=((256, 192),))


@pytest.fixture(scope="module")
def scene() -> Scenes:
    return scenes(range(4), SPLIT)


@pytest.fixture(scope="module")
def asked(scene: Scenes) -> Questions:
    return Asker(WORDS).ask(scene, np.random.default_rng(0), 3, absent=0.3, listing=True)


def answers(asked: Questions, row: int) -> list[str]:
    """Texts of the answers in one sequence, cut at the end token."""
    told = asked.target[row][asked.target[row] >= 0].tolist()
    return (
        WORDS.decode(told, skip_special_tokens=False).removesuffix("<|im_end|>").split("<|im_end|>")
    )


def test_answers_are_json_in_the_profile_s_frame(scene: Scenes, asked: Questions) -> None:
    for row, screen in enumerate(scene.screens):
        width, height = screen.size
        scale = np.array([width, height, width, height]) / 1000
        boxes = {button.box for button in screen.buttons}
        *single, listed = (json.loads(text) for text in answers(asked, row))
        assert len(single) == 3
        for items in [*single, listed]:
            found = {tuple(int(v) for v in np.rint(np.array(i["bbox_2d"]) * scale)) for i in items}
            assert found <= boxes
        assert len(listed) == len(boxes)


def test_each_question_points_at_its_own_cells(asked: Questions, scene: Scenes) -> None:
    seen = 0
    for row, label_at in asked.aim[0].any(-1).nonzero().tolist():
        text = WORDS.decode([int(asked.ids[row, label_at])])
        under = scene.label[row].tolist()
        aim = asked.aim[0, row, label_at].nonzero()[:, 0].tolist()
        if aim == [asked.image.stop]:  # absent: it looks past the image, at nothing on it
            assert LABELS.index(text) not in under
        else:
            assert {LABELS[under[place - asked.image.start]] for place in aim} == {text}
            seen += 1
    assert seen > 4


def test_a_question_sees_the_screen_and_itself_only(asked: Questions) -> None:
    first, second, *_ = asked.aim[0, 0].any(-1).nonzero()[:, 0].tolist()
    assert not asked.mask[0, 0, second, first]
    assert asked.mask[0, 0, second, asked.image].all()
    assert asked.mask[0, 0, second, second - 1]
    assert not asked.mask[0, 0, second, second + 1]


def test_guidance_never_looks_ahead_or_at_another_question(asked: Questions) -> None:
    assert (asked.aim <= asked.mask[:, 0]).all()


def test_numbers_are_predicted_where_the_guide_looks_for_them(asked: Questions) -> None:
    guided = asked.aim[1].any(-1) | asked.aim[3].any(-1)
    numbers = torch.isin(
        asked.target, torch.tensor([WORDS.token_to_id(str(number)) for number in range(1001)])
    )
    assert torch.equal(guided, numbers)


def test_the_swift_pass_is_hugging_face_s(scene: Scenes) -> None:
    from transformers import Qwen2VLImageProcessor

    torch.manual_seed(0)
    model = new_model(WORDS).eval()
    processor = Qwen2VLImageProcessor(
        patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3,
        size={"shortest_edge": 32768, "longest_edge": 524288},
    )  # fmt: skip
    pixels = processor(images=[scene.screens[1].image()], return_tensors="pt")
    asked = Asker(WORDS).ask(scene, np.random.default_rng(0), 1, absent=0.0, listing=False)
    grid = pixels["image_grid_thw"]
    ids = asked.ids[1:2]
    image = ids == WORDS.token_to_id("<|image_pad|>")
    with torch.no_grad():
        merged, _ = swift.see(model, scene.pixels[1:2])
        theirs = model(
            input_ids=ids, pixel_values=pixels["pixel_values"], image_grid_thw=grid,
            mm_token_type_ids=image.int(),
        ).logits  # fmt: skip
        embedded = model.model.language_model.embed_tokens(ids).clone()
        embedded[image] = merged[0]
        read = swift.read(model, embedded, asked.positions[:, 1:2], asked.mask[1:2])
        ours = model.lm_head(read.hidden)
    length = int((asked.target[1] >= 0).nonzero().max()) + 1
    torch.testing.assert_close(ours[:, :length], theirs[:, :length], atol=1e-4, rtol=1e-4)
