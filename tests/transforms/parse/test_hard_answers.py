"""Faults that people met in public, group 1: the family of each, not the one value (B001..B034)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codes import QueryKind, SampleStatus
from schemas.errors import ConfigError
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.records import Parsed
from schemas.resize import ResizeRule
from transforms.parse import ANSWER_FORMATS, parse_answer
from transforms.parse.flags import FLAGS, REPAIRS, repairs
from transforms.profiles.load import load_profile, resolve_frame
from transforms.resize import seen_size
from transforms.score import score_answers

FULL_HD = SeenImage.unchanged(Size(1920, 1080))
SIZES = st.builds(Size, st.integers(32, 8000), st.integers(32, 8000))


def read(
    text: str,
    answer_format: str = "qwen_json",
    frame: FrameKind = FrameKind.NORM_1000,
    seen: SeenImage = FULL_HD,
    finish: str = "stop",
    kind: QueryKind | None = None,
) -> Parsed:
    return parse_answer(text, finish, answer_format, frame, seen, kind)


def boxes(parsed: Parsed) -> list[tuple[float, ...]]:
    return [item.box.corners for item in parsed.items if item.box]


@given(SIZES, st.sampled_from([28, 32]), st.sampled_from([1_003_520, 12_845_056]))
def test_b001_resized_pixels_are_undone(original: Size, factor: int, most: int) -> None:
    if max(original.width, original.height) > 100 * min(original.width, original.height):
        return
    shown = seen_size(original, ResizeRule(factor=factor, min_pixels=3136, max_pixels=most))
    seen = SeenImage.unchanged(original).resized(shown)
    x, y = shown.width // 2, shown.height // 2
    answer = f'[{{"bbox_2d":[{x - 8},{y - 8},{x + 8},{y + 8}]}}]'
    (item,) = read(answer, frame=FrameKind.SEEN_PX, seen=seen).items
    near = (original.width / shown.width, original.height / shown.height)
    assert abs(item.point.x - original.width / 2) <= near[0] / 2 + 1e-6
    assert abs(item.point.y - original.height / 2) <= near[1] / 2 + 1e-6


def test_b002_thousandths_are_never_pixels() -> None:
    (item,) = read('{"x":512,"y":300}', "click_xy").items
    assert (item.point.x, item.point.y) == pytest.approx((983.04, 324))


@given(st.integers(0, 728), st.integers(0, 728))
def test_b003_the_convention_is_the_profiles_not_the_codes(x: int, y: int) -> None:
    seen = FULL_HD.resized(Size(1316, 728))
    answer = f'[{{"point_2d":[{x},{y}]}}]'
    places = {}
    for name in ("qwen2.5-vl", "qwen3-vl"):
        frame = resolve_frame(load_profile(name), None)
        (item,) = read(answer, frame=frame, seen=seen).items
        places[name] = (item.point.x, item.point.y)
    assert (places["qwen2.5-vl"] == places["qwen3-vl"]) == (x == y == 0)


@pytest.mark.parametrize("name", ["qwen4-vl", "Holo", "holo1.5b", "ui-tars-2", ""])
def test_b003_b004_a_name_never_picks_a_convention_by_its_beginning(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no profile"):
        load_profile(name)


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("holo1.5", FrameKind.SEEN_PX),
        ("holo2", FrameKind.NORM_1000),
        ("ui-tars", FrameKind.NORM_1000),
        ("ui-tars-1.5", FrameKind.SEEN_PX),
        ("qwen2.5-vl", FrameKind.SEEN_PX),
        ("qwen3-vl", FrameKind.NORM_1000),
    ],
)
def test_b004_versions_of_a_family_differ(name: str, frame: FrameKind) -> None:
    assert load_profile(name).frame is frame


@given(SIZES, st.data())
def test_b005_each_axis_is_divided_by_its_own_side(size: Size, data: st.DataObject) -> None:
    x1 = data.draw(st.integers(0, size.width - 1))
    y1 = data.draw(st.integers(0, size.height - 1))
    x2 = data.draw(st.integers(x1 + 1, size.width))
    y2 = data.draw(st.integers(y1 + 1, size.height))
    fractions = [x1 / size.width, y1 / size.height, x2 / size.width, y2 / size.height]
    seen = SeenImage.unchanged(size)
    (found,) = boxes(read(json.dumps({"bbox_2d": fractions}), frame=FrameKind.NORM_1, seen=seen))
    assert found == pytest.approx((x1, y1, x2, y2), abs=1e-6)


@pytest.mark.parametrize(
    ("size", "factor", "expected"),
    [
        (Size(1522, 1022), 28, Size(1512, 1008)),  # halves to even
        (Size(1920, 1080), 28, Size(1932, 1092)),  # the patch of Qwen2.5-VL
        (Size(1920, 1080), 32, Size(1920, 1088)),  # the patch of Qwen3-VL
    ],
)
def test_b006_b007_rounding_and_factor_of_the_processor(
    size: Size, factor: int, expected: Size
) -> None:
    assert seen_size(size, ResizeRule(factor=factor, min_pixels=3136, max_pixels=10**8)) == expected


@given(SIZES, SIZES, SIZES, st.integers(0, 1000), st.integers(0, 1000))
def test_b008_a_chain_of_resizes_is_undone_as_a_whole(
    first: Size, second: Size, third: Size, x: int, y: int
) -> None:
    chain = SeenImage.unchanged(first).resized(second).resized(third)
    pixel = (x / 1000 * third.width, y / 1000 * third.height)
    answer = json.dumps({"point_2d": pixel})
    (item,) = read(answer, frame=FrameKind.SEEN_PX, seen=chain).items
    place = (x / 1000 * first.width, y / 1000 * first.height)
    assert (item.point.x, item.point.y) == pytest.approx(place, abs=1e-6)


@pytest.mark.parametrize(
    ("box", "status", "clipped"),
    [
        ([806, 170, 1003, 223], "ok", True),  # 0.3 %
        ([806, 170, 1020, 223], "ok", True),  # 2 %: the last to pass
        ([806, 170, 1021, 223], "out_of_frame", False),
        ([-3, 170, 900, 223], "ok", True),
        ([19, 300, 154, 1063], "out_of_frame", False),  # 476 on a side of 448
        ([806, 170, 1000, 223], "ok", False),  # x = W is on the screen
    ],
)
def test_b009_a_little_outside_is_clipped_far_outside_is_not(
    box: list[int], status: str, clipped: bool
) -> None:
    parsed = read(json.dumps([{"bbox_2d": box}]))
    assert parsed.status == status
    assert ("clipped" in parsed.flags) == clipped


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4))
def test_b013_corners_in_any_order_are_one_box(corners: list[int]) -> None:
    x1, y1, x2, y2 = corners
    orders = [[x1, y1, x2, y2], [x2, y2, x1, y1], [x1, y2, x2, y1], [x2, y1, x1, y2]]
    found = [read(json.dumps([{"bbox_2d": order}])) for order in orders]
    assert len({(parsed.status, parsed.items) for parsed in found}) == 1
    assert (found[0].status == "degenerate") == (x1 == x2 or y1 == y2)


def test_b013_one_bad_box_does_not_harm_fifty() -> None:
    good = [{"bbox_2d": [i, i, i + 10, i + 10]} for i in range(50)]
    parsed = read(json.dumps([*good, {"bbox_2d": [300, 200, 120, 90]}]))
    assert len(parsed.items) == 51
    assert "corners_swapped" in repairs(parsed)


@pytest.mark.parametrize("box", [[433, 516, 433, 522], [780, 603, 780, 603], [1, 9, 8, 9]])
def test_b014_a_box_without_area_is_no_box(box: list[int]) -> None:
    parsed = read(json.dumps([{"bbox_2d": box}]))
    assert (parsed.status, parsed.items) == ("degenerate", ())


@pytest.mark.parametrize("said", ["=", "(a,b)", "", "x,y", "(,)", "(12,)", "null", "()"])
@pytest.mark.parametrize("shape", ["Action: click(start_box='{}')", "click(point='{}')"])
def test_b015_a_call_without_numbers_goes_to_review(said: str, shape: str) -> None:
    parsed = read(shape.format(said), "ui_tars")
    assert (parsed.status, parsed.items) == ("unparseable", ())
    assert "no_coordinates" in parsed.flags


@pytest.mark.parametrize("answer_format", ["qwen_json", "ref_boxes"])
@pytest.mark.parametrize(
    "text",
    [
        "click(start_box='<|box_start|>(1327,864)<|box_end|>')",
        "<point>1327 864</point>",
        "<point>1327, 864</point>",
        "<|box_start|>(1327,864)<|box_end|>",
    ],
)
def test_b016_a_point_where_a_box_was_asked_stays_a_point(answer_format: str, text: str) -> None:
    parsed = read(text, answer_format, FrameKind.SEEN_PX)
    (item,) = parsed.items
    assert (item.point.x, item.point.y, item.box) == (1327, 864, None)
    assert "shape_mismatch" in parsed.flags


@pytest.mark.parametrize("answer_format", ["point_text", "click_text", "ui_tars", "tagged"])
@pytest.mark.parametrize(
    "text", ["<box>100 200 300 260</box>", "(100, 200, 300, 260)", "[[100,200,300,260]]"]
)
def test_b017_a_box_is_never_read_as_its_first_corner(answer_format: str, text: str) -> None:
    (item,) = read(text, answer_format, seen=SeenImage.unchanged(Size(1000, 1000))).items
    assert (item.point.x, item.point.y) == (200, 230)


CALL = '{"name":"computer_use","arguments":{"action":"%s","coordinate":[%d,%d]}}'


@pytest.mark.parametrize("answer_format", ["tool_call", "qwen_json"])
def test_b018_calls_give_a_place_and_an_action_each(answer_format: str) -> None:
    text = "".join(
        f"<tool_call>\n{CALL % call}\n</tool_call>\n"
        for call in [("left_click", 471, 80), ("double_click", 10, 20)]
    )
    parsed = read(text, answer_format, seen=SeenImage.unchanged(Size(1000, 1000)))
    found = [(item.action, item.point.x, item.point.y) for item in parsed.items]
    assert found == [("left_click", 471, 80), ("double_click", 10, 20)]
    asked_one = read(text, answer_format, kind=QueryKind.GROUNDING)
    assert (asked_one.status, asked_one.items) == ("unparseable", ())


ENTRY = '{"label":"Guardar\ncambios","bbox_2d":[100,200,300,260]}'


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "```\n{}\n```", "Aquí está:\n{}"])
@pytest.mark.parametrize("entry", [ENTRY, ENTRY.replace("\n", "\\n")])
def test_b019_wrappings_do_not_change_the_answer(around: str, entry: str) -> None:
    (item,) = read(around.format(entry)).items
    assert item.label == "Guardar\ncambios"
    assert item.box.corners == (192, 216, 576, 280.8)


@given(st.text(st.sampled_from("`´ ,]}[{json:\"'\\ñ"), max_size=30))
def test_b020_b021_signs_in_a_label_are_the_labels(label: str) -> None:
    entry = json.dumps({"label": label, "bbox_2d": [1, 2, 3, 4]}, ensure_ascii=False)
    for text in (entry, f"```json\n{entry}\n```", entry.replace("4]}", "4],}")):
        (item,) = read(text).items
        assert item.label == (label.strip() or None)


@pytest.mark.parametrize("times", [2, 60, 500])
def test_b023_a_loop_is_kept_once_and_counted(times: int) -> None:
    entry = '{"bbox_2d":[10,20,30,40],"label":"fila"}'
    parsed = read("[" + f"{entry}," * times + '{"bbox_2d":[10,2', finish="length")
    assert parsed.status == "truncated"
    assert (len(parsed.items), parsed.collapsed) == (1, times - 1)
    assert {"repeated_items", "items_before_cut"} <= set(parsed.flags)


@given(st.integers(0, 40), st.integers(1, 30))
def test_b024_what_was_whole_before_the_limit_is_kept(whole: int, cut: int) -> None:
    entries = [json.dumps({"bbox_2d": [i, i, i + 10, i + 10]}) for i in range(whole + 1)]
    text = "[" + ", ".join(entries)
    parsed = read(text[: len(text) - min(cut, len(entries[-1]))], finish="length")
    assert parsed.status == "truncated"
    assert len(parsed.items) == whole


@pytest.mark.parametrize("answer_format", ANSWER_FORMATS)
@given(
    draft=st.sampled_from(['{"x":10,"y":10}', "(10, 10)", "<box>1 2 3 4</box>", CALL % ("a", 1, 2)])
)
def test_b025_reasoning_is_never_harvested(answer_format: str, draft: str) -> None:
    for text in (f"quizá {draft} no</think>", f"<think>{draft}", f"<think>{draft}</think>"):
        parsed = read(text, answer_format)
        assert parsed.status == "no_answer"
        assert "reasoning" in parsed.flags


@pytest.mark.parametrize(
    ("text", "answer_format"),
    [
        ('{"bbox_2d":[0,53, 0,21]}', "qwen_json"),
        ('{"bbox_2d":[0,53,0,21,0,60,0,30]}', "qwen_json"),
        ('{"bbox_2d":"0,53, 0,21"}', "qwen_json"),
        ("[[0,53, 0,21]]", "ref_boxes"),
        ("(0,53, 0,21)", "point_text"),
        ("(12,5 7,25)", "point_text"),
        ("<point>0,53 0,21</point>", "tagged"),
        ('{"x":"1,234","y":"5"}', "click_xy"),
    ],
)
@pytest.mark.parametrize("frame", [FrameKind.NORM_1000, FrameKind.NORM_1, FrameKind.PERCENT])
def test_b027_commas_with_two_readings_are_not_guessed(
    text: str, answer_format: str, frame: FrameKind
) -> None:
    parsed = read(text, answer_format, frame)
    assert parsed.items == ()
    assert "ambiguous_decimal" in parsed.flags


def test_b027_a_decimal_comma_with_one_reading_is_read() -> None:
    (item,) = read('{"x":"0,53","y":"0,21"}', "click_xy", FrameKind.NORM_1).items
    assert (item.point.x, item.point.y) == pytest.approx((1017.6, 226.8))
    assert read('{"x":0,53,"y":0,21}', "click_xy", FrameKind.NORM_1).items == ()
    assert read('{"x":"1.234,5","y":"1"}', "click_xy").items == ()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 999])
@pytest.mark.parametrize(
    ("shape", "answer_format"),
    [
        ('{"x":#,"y":3}', "click_xy"),
        ('{"action":"click","x":3,"y":#}', "click_action"),
        ('[{"bbox_2d":[1,2,#,4]}]', "qwen_json"),
        ('{"name":"c","arguments":{"action":"left_click","coordinate":[#,1]}}', "tool_call"),
        ("(#, 3)", "point_text"),
        ("[[1, 2, #, 4]]", "ref_boxes"),
        ("click(start_box='(#,1)')", "ui_tars"),
    ],
)
def test_b028_numbers_that_are_not_finite_give_no_place(
    number: str, shape: str, answer_format: str
) -> None:
    parsed = read(shape.replace("#", number), answer_format)
    assert parsed.status in {"unparseable", "out_of_frame"}
    assert parsed.items == ()


@pytest.mark.parametrize(
    ("text", "answer_format"),
    [
        ('{"bbox_2d":[1,2,3,4],"bbox_2d":[5,6,7,8]}', "qwen_json"),
        ('[{"bbox_2d":[1,2,3,4],"bbox_2d":[5,6,7,8]}]', "qwen_json"),
        ('{"x":1,"x":2,"y":3}', "click_xy"),
        ('{"arguments":{"coordinate":[1,2],"coordinate":[3,4]}}', "tool_call"),
    ],
)
def test_b029_a_key_with_two_values_is_not_the_last(text: str, answer_format: str) -> None:
    parsed = read(text, answer_format)
    assert (parsed.status, parsed.flags) == ("unparseable", ("duplicate_key",))


@pytest.mark.parametrize(
    "written",
    [
        '"(0.861, 0.036, 0.880, 0.052)"',
        '"[0.861,0.036,0.880,0.052]"',
        '["0.861","0.036","0.880","0.052"]',
    ],
)
def test_b030_numbers_as_text_are_read_and_flagged(written: str) -> None:
    parsed = read(f'{{"bbox":{written}}}', frame=FrameKind.NORM_1)
    assert boxes(parsed)[0] == pytest.approx((1653.12, 38.88, 1689.6, 56.16))
    assert {"number_as_text", "other_key"} <= set(parsed.flags)


def test_b032_answers_that_cannot_be_read_stay_in_the_total() -> None:
    texts = ['{"x":1,"y":2}'] * 7 + ["no", "{", '{"x":5000,"y":1}']
    parsed = [read(text, "click_xy") for text in texts]
    scored = [score_answers(QueryKind.GROUNDING, [one]) for one in parsed]
    assert len(scored) == 10
    assert sum(one.status is SampleStatus.OK for one in scored) == 7
    assert [one.probability for one in scored[7:]] == [0, 0, 0]


def test_b141_b142_text_that_stores_cannot_hold_is_replaced_and_flagged() -> None:
    parsed = read("<ref>\ud83d Guardar</ref><box>[[1,2,3,4]]</box>", "ref_boxes")
    assert parsed.items[0].label == "\ufffd Guardar"
    assert "invalid_unicode" in parsed.flags


def test_two_different_answers_are_never_resolved_by_taking_one() -> None:
    for text, answer_format in [
        ('{"x":1,"y":2} {"x":3,"y":4}', "click_xy"),
        ("(1, 2) (3, 4)", "point_text"),
        ("[[1,2,3,4]] [[5,6,7,8]]", "ref_boxes"),
        ('[{"bbox_2d":[1,2,3,4]},{"bbox_2d":[5,6,7,8]}]', "qwen_json"),
        ("Action: click(point='<point>1 2</point>')\nAction: click(point='<point>3 4</point>')",
         "ui_tars"),
    ]:  # fmt: skip
        parsed = read(text, answer_format, kind=QueryKind.GROUNDING)
        assert (parsed.status, parsed.items) == ("unparseable", ())
        assert "several_answers" in parsed.flags


def test_a_list_of_elements_may_differ() -> None:
    text = '[{"bbox_2d":[1,2,3,4]},{"bbox_2d":[5,6,7,8]}]'
    assert len(read(text, kind=QueryKind.LOCALIZATION).items) == 2


def test_repairs_are_named_apart_from_what_was_only_noticed() -> None:
    parsed = read('```json\n[{"bbox_2d":[300,260,100,200],}]\n```')
    assert repairs(parsed) == ("corners_swapped", "point_from_box", "trailing_comma")
    assert set(parsed.flags) - set(repairs(parsed)) == {"fenced"}
    assert set(REPAIRS) < set(FLAGS)
    assert all(FLAGS.values())
