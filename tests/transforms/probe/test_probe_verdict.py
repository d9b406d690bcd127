"""The verdict: every convention is found under noise and nonsense, and none where there is none."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_models import Convention, Model, anywhere, chatty, engine, same_corner, with_task

from schemas.errors import ConfigError
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.profile import ModelProfile
from schemas.records import Answer, Completion
from schemas.resize import CanvasRule, ResizeRule, TileRule
from transforms.engines.base import EngineRequest
from transforms.parse.raw import RawNumbers
from transforms.probe.ask import ask_scenes, loosened
from transforms.probe.evidence import evidence_table, verdict_line
from transforms.probe.hypotheses import KNOWN_RULES, BoxForm, Hypothesis, Order, hypotheses
from transforms.probe.scene import (
    FULL_SIZES,
    FULL_TARGETS,
    START_SIZES,
    START_TARGETS,
    draw_scenes,
)
from transforms.probe.verdict import Reply, Verdict, judge_replies
from transforms.profiles.load import load_profile

START = draw_scenes(START_SIZES, START_TARGETS, 0)
FULL = draw_scenes(FULL_SIZES, FULL_TARGETS, 0)
HOLO2 = load_profile("holo2")
SHOWN_AS_IS = HOLO2.model_copy(update={"resize": None})
SMALL = HOLO2.model_copy(
    update={"resize": ResizeRule(factor=28, min_pixels=65_536, max_pixels=1_003_520)}
)
BOXES = with_task(load_profile("qwen3-vl"), answer_format="qwen_json")
TILES_512 = TileRule(kind="tiles", tile=512, max_tiles=12)
CANVAS = CanvasRule(kind="canvas", width=1008, height=672)


def probe(
    convention: Convention, profile: ModelProfile = SMALL, *, full: bool = False, seed: int = 1
) -> Verdict:
    scenes = FULL if full else START
    asked = ask_scenes(engine(Model(scenes, profile, convention, seed)), profile, scenes)
    return judge_replies(asked.replies)


def found(verdict: Verdict) -> Hypothesis:
    assert verdict.finding == "settled", verdict_line(verdict)
    return verdict.candidates[0]


PIXELS_AND_FRACTIONS = [
    FrameKind.ORIGINAL_PX,
    FrameKind.SEEN_PX,
    FrameKind.NORM_1000,
    FrameKind.NORM_1,
    FrameKind.PERCENT,
]


@pytest.mark.parametrize("frame", PIXELS_AND_FRACTIONS)
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("nonsense", [0.0, 0.3])
@pytest.mark.parametrize("full", [False, True], ids=["start", "full"])
def test_points_of_every_frame(frame: FrameKind, order: Order, nonsense: float, full: bool) -> None:
    verdict = probe(Convention(frame, order=order, nonsense=nonsense), full=full)
    best = found(verdict)
    assert (best.frame, best.order, best.rule) == (frame, order, None)
    assert verdict.margin > 10
    assert verdict.standings[0].median_share < 0.03


@pytest.mark.parametrize("frame", PIXELS_AND_FRACTIONS)
@pytest.mark.parametrize("form", list(BoxForm))
def test_boxes_of_either_form(frame: FrameKind, form: BoxForm) -> None:
    best = found(probe(Convention(frame, boxes=form, nonsense=0.2), BOXES, full=True))
    assert best.box_form is form
    if frame in (FrameKind.ORIGINAL_PX, FrameKind.SEEN_PX):
        assert best.frame in (FrameKind.ORIGINAL_PX, FrameKind.SEEN_PX)
    else:
        assert best.frame is frame


@pytest.mark.parametrize("name", KNOWN_RULES)
def test_pixels_of_what_the_processor_makes_of_the_image(name: str) -> None:
    rule = KNOWN_RULES[name]
    verdict = probe(Convention(FrameKind.SEEN_PX, rule), SHOWN_AS_IS, full=True)
    assert name in [one.rule_name for one in verdict.candidates], verdict_line(verdict)
    assert all(one.frame in (FrameKind.SEEN_PX, FrameKind.ORIGINAL_PX)
               for one in verdict.candidates)  # fmt: skip


def test_thousandths_of_a_padded_canvas() -> None:
    verdict = probe(Convention(FrameKind.NORM_1000, CANVAS), SHOWN_AS_IS)
    assert found(verdict).rule == CANVAS
    assert verdict.excludes(Hypothesis(FrameKind.NORM_1000))


def test_what_coincides_is_tied_and_not_decided() -> None:
    verdict = probe(Convention(FrameKind.NORM_1000), full=True)
    assert {one.frame for one in verdict.candidates} == {FrameKind.NORM_1000, FrameKind.NORM_999}
    assert "0 to 999" in verdict_line(verdict)
    as_is = probe(Convention(FrameKind.ORIGINAL_PX), SHOWN_AS_IS)
    assert {FrameKind.ORIGINAL_PX, FrameKind.SEEN_PX} <= {one.frame for one in as_is.candidates}


@pytest.mark.parametrize("full", [False, True], ids=["start", "full"])
@pytest.mark.parametrize("script", [anywhere, same_corner])
def test_a_model_that_cannot_ground_settles_nothing(script: object, full: bool) -> None:
    scenes = FULL if full else START
    verdict = judge_replies(ask_scenes(engine(script), SMALL, scenes).replies)  # type: ignore[arg-type]
    assert verdict.finding == "cannot_tell"
    assert verdict.candidates == ()
    assert not any(verdict.excludes(Hypothesis(frame)) for frame in FrameKind)
    assert "cannot tell: " in verdict_line(verdict)


def test_a_model_that_only_talks_settles_nothing() -> None:
    verdict = judge_replies(ask_scenes(engine(chatty), SMALL, START).replies)
    assert (verdict.finding, verdict.read, verdict.asked) == ("cannot_tell", 0, 16)
    assert verdict_line(verdict).startswith("cannot tell: only 0 of 16 answers name one place")
    assert evidence_table(verdict) == []


def test_mostly_nonsense_settles_nothing() -> None:
    verdict = probe(Convention(nonsense=0.9), full=True)
    assert verdict.finding == "cannot_tell"


def test_a_failed_request_is_a_question_without_an_answer() -> None:
    model = Model(START, SMALL, Convention())

    def script(request: EngineRequest) -> Answer:
        answer = model(request)
        if request.request_id < "2":
            return Answer(request.request_id, error_detail="roto")
        return answer

    verdict = judge_replies(ask_scenes(engine(script), SMALL, START).replies)
    assert verdict.asked == 16
    assert verdict.read < 16
    assert found(verdict).frame is FrameKind.NORM_1000


@given(st.integers(0, 10_000), st.sampled_from(PIXELS_AND_FRACTIONS), st.floats(0.0, 0.01),
       st.sampled_from([0.0, 0.15, 0.3]))  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_the_truth_is_never_ruled_out(
    seed: int, frame: FrameKind, noise: float, nonsense: float
) -> None:
    verdict = probe(Convention(frame, noise=noise, nonsense=nonsense), seed=seed)
    assert not verdict.excludes(Hypothesis(frame))
    if verdict.finding == "settled":
        assert Hypothesis(frame) in verdict.candidates


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_chance_is_never_a_convention(seed: int) -> None:
    chance = random.Random(seed)
    replies = [
        Reply(
            number,
            target,
            SeenImage.unchanged(scene.size),
            RawNumbers((chance.uniform(0, 1000), chance.uniform(0, 1000)), None),
        )
        for number, scene in enumerate(START)
        for target in scene.targets
    ]
    assert judge_replies(replies, seed).finding == "cannot_tell"


_wild = st.one_of(st.floats(allow_nan=False), st.integers(-(10**300), 10**300).map(float))


@given(st.lists(st.tuples(_wild, _wild, _wild, _wild), min_size=16, max_size=16))
@settings(max_examples=20, deadline=None)
def test_any_numbers_give_a_verdict(boxes: list[tuple[float, float, float, float]]) -> None:
    targets = [(number, target) for number, s in enumerate(START) for target in s.targets]
    replies = [
        Reply(number, target, SeenImage.unchanged(START[number].size), RawNumbers(None, box))
        for (number, target), box in zip(targets, boxes, strict=True)
    ]
    verdict = judge_replies(replies)
    assert all(standing.median_px >= 0 for standing in verdict.standings)
    assert evidence_table(verdict)


def test_the_same_answers_give_the_same_verdict() -> None:
    assert probe(Convention(nonsense=0.3)) == probe(Convention(nonsense=0.3))


def test_a_rule_that_changes_nothing_is_no_hypothesis() -> None:
    chain = SeenImage.unchanged(Size(1008, 672))
    names = {one.rule_name for one in hypotheses([chain], boxes=False)}
    assert "canvas of 1008x672" not in names
    assert "tiles of 512" in names


def test_the_grammar_lets_every_frame_be_said() -> None:
    number = {"type": "number", "minimum": -1, "maximum": 99_999}
    schema = {"type": "object", "properties": {
        "x": {"type": "integer", "minimum": 0, "maximum": 1000, "title": "X"},
        "items": {"type": "array", "minItems": 2, "items": [{"type": "integer"}]}}}  # fmt: skip
    assert loosened(schema) == {"type": "object", "properties": {
        "x": {"title": "X", **number},
        "items": {"type": "array", "minItems": 2, "items": [number]}}}  # fmt: skip


def test_requests_are_the_jobs_own_with_a_free_grammar() -> None:
    seen: list[EngineRequest] = []

    def script(request: EngineRequest) -> Answer:
        seen.append(request)
        return Answer(request.request_id, (Completion("", "stop", 0),))

    ask_scenes(engine(script), HOLO2, START)
    assert len({request.request_id for request in seen}) == 16
    assert all("Localize an element" in request.prompt for request in seen)
    assert all('"maximum":1000' not in (request.json_schema or "") for request in seen)
    assert {request.n for request in seen} == {1}
    assert {request.sampling.temperature for request in seen} == {0.0}


def test_a_profile_without_grounding_cannot_be_probed() -> None:
    profile = HOLO2.model_copy(update={"tasks": {}})
    with pytest.raises(ConfigError, match="asks no grounding"):
        ask_scenes(engine(chatty), profile, START)


def test_the_table_marks_what_the_profile_says() -> None:
    verdict = probe(Convention(FrameKind.ORIGINAL_PX))
    lines = evidence_table(verdict, Hypothesis(FrameKind.NORM_1), rows=2)
    assert lines[1].startswith("pixels of the original ")
    assert lines[1].endswith("best")
    assert any(line.startswith("0 to 1 ") and line.endswith("<- the profile") for line in lines)
    assert lines[-1].endswith("more do worse)")
