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
    for row, indices in enumerate(asked.probe.tolist()):
        for index, place in enumerate(indices[:3]):
            label = WORDS.decode([int(asked.ids[row, place])])
            assert label in LABELS
            aim = asked.aim[row, index].nonzero()[:, 0] - asked.image.start
            under = scene.label[row].tolist()
            shown = {LABELS[under[cell]] for cell in aim.tolist() if cell < len(under)}
            assert shown in ({label}, set())


def test_a_question_sees_the_screen_and_itself_only(asked: Questions) -> None:
    first, second = asked.probe[0, 0].item(), asked.probe[0, 1].item()
    assert not asked.mask[0, 0, second, first]
    assert asked.mask[0, 0, second, asked.image].all()
    assert asked.mask[0, 0, second, second - 1]
    assert not asked.mask[0, 0, second, second + 1]


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
        hidden, _ = swift.read(model, embedded, asked.positions[:, 1:2], asked.mask[1:2])
        ours = model.lm_head(hidden)
    length = int((asked.target[1] >= 0).nonzero().max()) + 1
    torch.testing.assert_close(ours[:, :length], theirs[:, :length], atol=1e-4, rtol=1e-4)
