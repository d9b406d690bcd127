"""Sample ids: the same question asked the same way has the same id, any difference another."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from schemas.codes import QueryKind, QueryOrigin
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.profile import Checkpoint, ModelProfile, Sampling, TaskSpec
from schemas.provenance import Provenance
from schemas.records import ByteRange, Member, Query, Screen
from schemas.resize import ResizeRule
from transforms.compose import (
    Composed,
    ComposeSettings,
    compose_samples,
    prompt_text,
    system_text,
    to_request,
)
from transforms.profiles.load import load_profile

GROUNDING = TaskSpec(
    prompt_version="1",
    prompt="Busque {target} según {schema}",
    system="Responda en JSON",
    answer_format="click_xy",
    json_schema={"type": "object"},
    structured=True,
    max_tokens=64,
)
PROFILE = ModelProfile(
    name="prueba",
    description="para pruebas",
    checkpoints=(Checkpoint(id="a/b", licence="mit", source="ninguna"),),
    frame=FrameKind.NORM_1000,
    tasks={QueryKind.GROUNDING: GROUNDING},
    greedy=Sampling(),
    vote=Sampling(temperature=0.7, top_p=0.95),
    chat_template_kwargs={"thinking": False},
    sources={"todo": "inventado"},
)
LOCALIZATION = GROUNDING.model_copy(update={"prompt": "Todo", "answer_format": "qwen_json"})
SETTINGS = ComposeSettings(model="a/b", revision="abc", k=5, seed=0)
SEEN = SeenImage.unchanged(Size(1280, 800))


def query(
    index: int = 0, instruction: str = "el botón Guardar", kind: QueryKind = QueryKind.GROUNDING
) -> Query:
    return Query(index, kind, instruction, QueryOrigin.SIDECAR)


def screen(*queries: Query, screen_id: str = "5c" * 32) -> Screen:
    member = Member("a.png", ByteRange("a.png", 512, 1000))
    return Screen(
        screen_id,
        member,
        Size(1280, 800),
        "PNG",
        "RGB",
        1000,
        1,
        Provenance(),
        queries or (query(),),
    )


def composed(
    profile: ModelProfile = PROFILE,
    settings: ComposeSettings = SETTINGS,
    frame: FrameKind = FrameKind.NORM_1000,
    of: Screen | None = None,
) -> Composed:
    return compose_samples(of or screen(), profile, frame, SEEN, settings)


def only_id(**changes: Any) -> str:
    (question,) = composed(**changes).questions
    return question.sample.sample_id


def task(**changes: Any) -> ModelProfile:
    return PROFILE.model_copy(
        update={"tasks": {QueryKind.GROUNDING: GROUNDING.model_copy(update=changes)}}
    )


def test_golden_ids() -> None:
    # If these change, every dataset's samples are asked again: only for a reason.
    assert only_id() == "c18b7165cfacdb24cab621d8e5717534"
    assert (
        only_id(settings=dataclasses.replace(SETTINGS, k=1)) == "6892813789277dd25b660c671d9fdefe"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"of": screen(screen_id="5d" * 32)},
        {"of": screen(query(instruction="el botón Guardar."))},
        {"frame": FrameKind.SEEN_PX},
        {"profile": task(prompt_version="2")},
        {"profile": task(prompt="Busca {target} según {schema}")},
        {"profile": task(system=None)},
        {"profile": task(answer_format="qwen_json")},
        {"profile": task(structured=False)},
        {"profile": task(json_schema={"type": "object", "title": "T"})},
        {"profile": task(max_tokens=65)},
        {"profile": PROFILE.model_copy(update={"name": "otra"})},
        {"profile": PROFILE.model_copy(update={"chat_template_kwargs": {}})},
        {"profile": PROFILE.model_copy(update={"vote": Sampling(temperature=0.7, top_p=0.9)})},
        {"profile": PROFILE.model_copy(
            update={"vote": Sampling(temperature=0.7, top_p=0.95, top_k=20)})},
        {"profile": PROFILE.model_copy(
            update={"vote": Sampling(temperature=0.7, top_p=0.95, presence_penalty=1.5)})},
        {"profile": PROFILE.model_copy(
            update={"resize": ResizeRule(factor=32, min_pixels=1, max_pixels=9)})},
        {"settings": dataclasses.replace(SETTINGS, model="a/c")},
        {"settings": dataclasses.replace(SETTINGS, revision="abd")},
        {"settings": dataclasses.replace(SETTINGS, k=4)},
        {"settings": dataclasses.replace(SETTINGS, k=1)},
        {"settings": dataclasses.replace(SETTINGS, temperature=0.8)},
        {"settings": dataclasses.replace(SETTINGS, seed=1)},
    ],
)  # fmt: skip
def test_every_ingredient_changes_the_id(changes: dict[str, Any]) -> None:
    assert only_id(**changes) != only_id()


def test_what_shapes_no_answer_leaves_the_id_alone() -> None:
    moved = dataclasses.replace(screen(query(index=7)), member=Member("b", ByteRange("b", None, 1)))
    described = PROFILE.model_copy(
        update={"description": "otra", "greedy": Sampling(top_k=5), "engine": {"max_num_seqs": 4}}
    )
    assert only_id(of=moved, profile=described) == only_id()
    assert only_id(settings=dataclasses.replace(SETTINGS, temperature=0.7)) == only_id()


def test_grounding_is_asked_k_times_and_localization_once_greedily() -> None:
    profile = PROFILE.model_copy(
        update={
            "tasks": {QueryKind.GROUNDING: GROUNDING, QueryKind.LOCALIZATION: LOCALIZATION},
        }
    )
    both = screen(query(), query(1, "todos los elementos", QueryKind.LOCALIZATION))
    grounding, localization = composed(profile, of=both).questions
    assert (grounding.n, grounding.sampling) == (5, PROFILE.vote)
    assert (localization.n, localization.sampling) == (1, PROFILE.greedy)


def test_one_answer_is_greedy() -> None:
    (question,) = composed(settings=dataclasses.replace(SETTINGS, k=1, temperature=0.9)).questions
    assert (question.n, question.sampling.temperature) == (1, 0.0)


def test_temperature_of_the_job_wins() -> None:
    (question,) = composed(settings=dataclasses.replace(SETTINGS, temperature=1.25)).questions
    assert question.sampling == Sampling(temperature=1.25, top_p=0.95)


def test_a_kind_the_profile_cannot_ask_is_a_reject_of_its_own() -> None:
    result = composed(of=screen(query(1, "todo", QueryKind.LOCALIZATION), query(2)))
    (reject,) = result.rejects
    assert (reject.stage, reject.reason) == ("compose", "query_invalid")
    assert (reject.member, reject.instruction) == ("a.png", "todo")
    assert "cannot ask localization queries, only: grounding" in reject.detail
    assert [question.sample.query.index for question in result.questions] == [2]


def test_a_repeated_query_is_asked_once() -> None:
    result = composed(of=screen(query(0), query(1), query(2, "otro")))
    assert [question.sample.query.index for question in result.questions] == [0, 2]
    (reject,) = result.rejects
    assert reject.reason == "sample_duplicate"
    assert reject.sample_id == result.questions[0].sample.sample_id


@given(st.text())
def test_instructions_are_put_in_as_they_are(instruction: str) -> None:
    text = prompt_text(GROUNDING, instruction)
    assert text == "Busque " + instruction + " según {'type': 'object'}"


@pytest.mark.parametrize("instruction", ["{target}", "{schema}", "{0}", "{", "}}", "\\1", "%s"])
def test_braces_of_an_instruction_are_text(instruction: str) -> None:
    assert prompt_text(GROUNDING, instruction) == f"Busque {instruction} según {{'type': 'object'}}"


def test_request_carries_what_was_composed() -> None:
    (question,) = composed().questions
    image = Image.new("RGB", (1280, 800))
    request = to_request(question, image, PROFILE)
    assert request.request_id == question.sample.sample_id
    assert request.image is image
    assert (request.system, request.n, request.max_tokens) == ("Responda en JSON", 5, 64)
    assert request.json_schema == '{"type":"object"}'
    assert request.chat_template_kwargs == '{"thinking":false}'
    assert request.seed == int(request.request_id[:8], 16) >> 1 < 2**31


def test_no_grammar_is_sent_where_none_is_wanted() -> None:
    profile = task(structured=False)
    (question,) = composed(profile).questions
    assert to_request(question, Image.new("RGB", (8, 8)), profile).json_schema is None


def test_grammar_keeps_the_order_of_its_keys() -> None:
    profile = task(json_schema={"properties": {"note": {}, "action": {}}})
    (question,) = composed(profile).questions
    schema = to_request(question, Image.new("RGB", (8, 8)), profile).json_schema
    assert schema == '{"properties":{"note":{},"action":{}}}'


def test_b083_image_key_tells_sizes_and_screens_apart_and_joins_queries() -> None:
    def key(of: Screen, seen: SeenImage) -> set[str]:
        result = compose_samples(of, PROFILE, FrameKind.NORM_1000, seen, SETTINGS)
        return {
            to_request(q, Image.new("RGB", (8, 8)), PROFILE).image_key for q in result.questions
        }

    wide = SEEN.resized(Size(640, 400))
    assert len(key(screen(query(), query(1, "otro")), SEEN)) == 1
    assert key(screen(), SEEN) != key(screen(), wide)
    assert key(screen(), SEEN) != key(screen(screen_id="5d" * 32), SEEN)


def test_texts_may_name_the_size_of_the_shown_image() -> None:
    task = GROUNDING.model_copy(
        update={"system": "height {height}, width {width}", "prompt": "{target} on {width}"}
    )
    shown = SeenImage.unchanged(Size(1920, 1080)).resized(Size(1932, 1092))
    assert system_text(task, shown.seen) == "height 1092, width 1932"
    assert prompt_text(task, "{height}", shown.seen) == "{height} on 1932"  # filled once
    assert system_text(GROUNDING.model_copy(update={"system": None}), shown.seen) is None


@pytest.mark.parametrize(
    ("name", "image_first", "keep_special_tokens"),
    [("phi-ground", False, False), ("os-atlas-7b", True, True), ("holo2", True, False)],
)
def test_a_family_is_asked_in_the_form_it_learnt(
    name: str, image_first: bool, keep_special_tokens: bool
) -> None:
    profile = load_profile(name)
    (question,) = composed(profile).questions
    request = to_request(question, Image.new("RGB", (1280, 800)), profile)
    assert request.image_first is image_first
    assert request.keep_special_tokens is keep_special_tokens


def test_the_form_of_a_request_is_part_of_its_id() -> None:
    def changed(**update: object) -> str:
        task = GROUNDING.model_copy(update=update)
        return only_id(profile=PROFILE.model_copy(update={"tasks": {QueryKind.GROUNDING: task}}))

    ids = {only_id(), changed(image_first=False), changed(keep_special_tokens=True)}
    assert len(ids) == 3
