"""Whatever a model says: no exception, nothing non-finite, nothing off the screen."""

import math
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codes import SampleStatus
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.profile import AnswerFormat
from schemas.records import Parsed
from transforms.parse import ANSWER_FORMATS, parse_answer
from transforms.parse.flags import FLAGS

SEEN = SeenImage.unchanged(Size(1280, 800)).resized(Size(1280, 768)).placed(Size(1312, 800), 16, 8)

_pieces = st.sampled_from(
    ['{"x":', '"y":', "{", "}", "[", "]", ",", '"', "\\", "1", "-", "e9", "NaN", "Infinity", " ",
     '"bbox_2d":[', '"point_2d":[', '"label":"', "<think>", "</think>", "```json", "```", "null",
     "true", "1000", "0.5", "9" * 400, "\ud83d", "\x00", "ñ", "\u2028", '[{"bbox_2d":[1,2,3,4]}]',
     "(", ")", "12", ";", "Click(", "<box>", "</box>", "<point>", "</point>", "<|box_start|>",
     "<|box_end|>", "<ref>a</ref>", "Action:", "\nThought:", "click(start_box='", "(5, 5)", "x=",
     "<tool_call>", "</tool_call>", '{"name":"c","arguments":{"coordinate":[1,2]}}', "[-1,-1]"]
)  # fmt: skip
_answers = st.one_of(st.text(), st.lists(_pieces, max_size=40).map("".join))
_numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.integers(min_value=-50, max_value=1050),
    st.sampled_from(["1", "0,5", None, True]),
)


def check(parsed: Parsed) -> None:
    assert parsed.items or parsed.status is not SampleStatus.OK
    assert not parsed.items or parsed.status in {SampleStatus.OK, SampleStatus.TRUNCATED}
    assert parsed.flags == tuple(sorted(set(parsed.flags)))
    assert set(parsed.flags) <= set(FLAGS)
    for item in parsed.items:
        assert item.point is not None
        assert item.point.finite
        assert item.point.inside(SEEN.original)
        if item.box is not None:
            assert all(map(math.isfinite, item.box.corners))
            x1, y1, x2, y2 = item.box.corners
            assert 0 <= x1 < x2 <= 1280
            assert 0 <= y1 < y2 <= 800


@given(_answers, st.sampled_from(["stop", "length", "?"]), st.sampled_from(ANSWER_FORMATS),
       st.sampled_from(FrameKind))  # fmt: skip
def test_any_text(text: str, finish: str, answer_format: str, frame: FrameKind) -> None:
    check(parse_answer(text, finish, answer_format, frame, SEEN))


_FORMS = (
    '{"x": %s, "y": %s}', "Click(%s, %s)", "(%s, %s)", "[%s,%s]", "<point>%s %s</point>",
    "[[%s, %s, %s, %s]]", "<ref>a</ref><box>[[%s,%s,%s,%s]]</box>", "(%s,%s),(%s,%s)",
    "<|box_start|>(%s,%s),(%s,%s)<|box_end|>", "Thought: (1,2)\nAction: click(start_box='(%s,%s)')",
    '<tool_call>{"arguments": {"action": "left_click", "coordinate": [%s, %s]}}</tool_call>',
)  # fmt: skip
_written = st.one_of(
    st.integers(-20, 1020).map(str),
    st.floats(-20, 1100).map(str),
    st.sampled_from(["0,53", "NaN", "1e999", "", "=", "9" * 400, "x=4", '"7"']),
)


@given(st.data(), st.sampled_from(_FORMS), st.sampled_from(ANSWER_FORMATS),
       st.sampled_from(FrameKind))  # fmt: skip
def test_any_damage_to_a_published_form(
    data: st.DataObject, form: str, answer_format: str, frame: FrameKind
) -> None:
    text = form % tuple(data.draw(_written) for _ in range(form.count("%s")))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    for damaged in (text, text[:start] + text[end:], text[:end], text + text[start:]):
        check(parse_answer(damaged, "length", answer_format, frame, SEEN))


@given(st.lists(st.lists(_numbers, min_size=1, max_size=5), max_size=4), st.sampled_from(FrameKind))
def test_any_numbers_in_boxes(rows: list[list[object]], frame: FrameKind) -> None:
    text = "[" + ",".join(f'{{"bbox_2d":{_json(row)}}}' for row in rows) + "]"
    check(parse_answer(text, "stop", "qwen_json", frame, SEEN))


@given(_numbers, _numbers, st.sampled_from(FrameKind))
def test_any_numbers_in_clicks(x: object, y: object, frame: FrameKind) -> None:
    text = f'{{"x":{_json(x)},"y":{_json(y)}}}'
    check(parse_answer(text, "stop", "click_xy", frame, SEEN))


def _json(value: object) -> str:
    import json

    return json.dumps(value)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_what_is_said_plainly_is_read_exactly(x: int, y: int) -> None:
    (item,) = parse_answer(
        f'{{"x":{x},"y":{y}}}', "stop", "click_xy", FrameKind.NORM_1000,
        SeenImage.unchanged(Size(1000, 1000)),
    ).items  # fmt: skip
    assert (item.point.x, item.point.y) == pytest.approx((x, y))


@pytest.mark.parametrize(
    "unit", ["[", "{", '"', '{"x":', '[{"bbox_2d":[1,2,3,4]},', "</think>", "\\", " ", "```json"]
)
@pytest.mark.parametrize("answer_format", ANSWER_FORMATS)
def test_a_megabyte_is_refused_before_it_is_read(unit: str, answer_format: str) -> None:
    text = unit * (1_000_000 // len(unit))
    parsed = parse_answer(text, "length", answer_format, FrameKind.NORM_1000, SEEN)
    assert (parsed.status, parsed.flags) == ("unparseable", ("too_long",))


@pytest.mark.parametrize("unit", ["[", '"', '{"x":1}', "[1,", "\\", " ,", ",]", "<think>", '[{"'])
@pytest.mark.parametrize("answer_format", ANSWER_FORMATS)
def test_the_longest_answer_that_is_read_ends(unit: str, answer_format: str) -> None:
    text = unit * (262_144 // len(unit))
    check(parse_answer(text, "length", answer_format, FrameKind.NORM_1000, SEEN))


def test_a_dense_screen_of_thousands_of_elements_is_read_whole() -> None:
    boxes = ",".join(f'{{"bbox_2d":[{i % 999},{i // 999},1000,900]}}' for i in range(5000))
    plain = SeenImage.unchanged(Size(1280, 800))
    parsed = parse_answer(f"[{boxes}]", "stop", "qwen_json", FrameKind.NORM_1000, plain)
    assert len(parsed.items) == 5000


def test_many_separate_answers_are_no_answer() -> None:
    parsed = parse_answer('{"x":1,"y":1}' * 65, "stop", "click_xy", FrameKind.NORM_1000, SEEN)
    assert (parsed.status, parsed.flags) == ("unparseable", ("several_answers",))


def test_every_format_a_profile_may_name_has_a_parser() -> None:
    assert set(ANSWER_FORMATS) == set(typing.get_args(AnswerFormat))
