"""Answers that are boxes with names, actions and tool calls, literal by literal, per profile.

The model sees 1000x1000 pixels of a 2000x1000 screen, so that thousandths and seen pixels are the
same numbers and one table serves both frames; expected places are in those numbers.
"""

import pytest
from golden_cases import golden_cases, halved_place

from schemas.codes import QueryKind
from schemas.geometry import FrameKind, SeenImage, Size
from transforms.parse import parse_answer

SEEN = SeenImage.unchanged(Size(2000, 1000)).resized(Size(1000, 1000))
Place = tuple[float, ...] | None
Row = tuple[str, str, str, Place, str | None, tuple[str, ...]]
BOX = (100, 200, 300, 260)
AT = (512, 300)
CENTRE = ("point_from_box",)
BAD = ("no_coordinates",)

# (answer, finish reason, status, place, label or action, flags)
NAMED = "<|object_ref_start|>idioma<|object_ref_end|><|box_start|>(100,200),(300,260)<|box_end|>"
REF_BOXES: list[Row] = [
    (NAMED, "stop", "ok", BOX, "idioma", CENTRE),  # OS-Atlas-7B, special tokens kept
    (f"{NAMED}<|im_end|>", "stop", "ok", BOX, "idioma", CENTRE),  # as its README prints it
    ("<|box_start|>(100,200),(300,260)<|box_end|>", "stop", "ok", BOX, None, CENTRE),  # no name
    ("idioma(100,200),(300,260)", "stop", "ok", BOX, None, (*CENTRE, "text_around")),  # signs lost
    ("(100,200),(300,260)", "stop", "ok", BOX, None, CENTRE),
    ("[[100, 200, 300, 260]]", "stop", "ok", BOX, None, CENTRE),  # InternVL as asked
    ("[100, 200, 300, 260]", "stop", "ok", BOX, None, CENTRE),
    ("<ref>Ajustes</ref><box>[[100, 200, 300, 260]]</box>", "stop", "ok", BOX, "Ajustes", CENTRE),
    ("<box>[[100, 200, 300, 260]]</box>", "stop", "ok", BOX, None, CENTRE),
    ("[[100, 200], [300, 260]]", "stop", "ok", BOX, None, CENTRE),  # corners in brackets each
    ("The box is [[100, 200, 300, 260]].", "stop", "ok", BOX, None, (*CENTRE, "text_around")),
    ("[[300, 260, 100, 200]]", "stop", "ok", BOX, None, ("corners_swapped", *CENTRE)),  # reversed
    ("[[100, 200, 300, 260]] [[100, 200, 300, 260]]", "stop", "ok", BOX, None,
     (*CENTRE, "repeated_items")),  # said twice
    ("[[1, 2, 3, 4]] [[100, 200, 300, 260]]", "stop", "unparseable", None, None,
     (*CENTRE, "several_answers")),  # one thing was asked for
    ("<|box_start|>(512,300)<|box_end|>", "stop", "ok", AT, None, ("shape_mismatch",)),  # a point
    ("[[512, 300]]", "stop", "ok", AT, None, ("shape_mismatch",)),
    ("<point>512 300</point>", "stop", "ok", AT, None, ("shape_mismatch",)),
    ("click(start_box='<|box_start|>(512,300)<|box_end|>')", "stop", "ok", AT, None,
     ("shape_mismatch", "text_around")),  # another family's action
    ("[[100, 200, 100, 260]]", "stop", "degenerate", None, None, ()),  # no width
    ("[[0,53, 0,21]]", "stop", "unparseable", None, None, ("ambiguous_decimal", *BAD)),
    ("[[806, 170, 1003, 223]]", "stop", "ok", (806, 170, 1000, 223), None, ("clipped", *CENTRE)),
    ("[[806, 170, 1103, 223]]", "stop", "out_of_frame", None, None, ()),
    ("[[100, 200, 300]]", "stop", "unparseable", None, None, BAD),  # three numbers
    ("[[100, 200,", "length", "truncated", None, None, ("unclosed",)),
    ("[[100, 200,", "stop", "unparseable", None, None, BAD),
    ("", "stop", "no_answer", None, None, ()),
    ("There is no such element.", "stop", "unparseable", None, None, BAD),
    ("<think>[[1,2,3,4]]</think>[[100, 200, 300, 260]]", "stop", "ok", BOX, None,
     (*CENTRE, "reasoning")),
    ("<box>none</box>", "stop", "unparseable", None, None, BAD),  # not this family's refusal
]  # fmt: skip

UI_TARS: list[Row] = [
    ("Action: click(start_box='(512,300)')", "stop", "ok", AT, "click", ()),  # version 1
    ("Action: click(start_box='<|box_start|>(512,300)<|box_end|>')", "stop", "ok", AT, "click", ()),
    ("Action: click(point='<point>512 300</point>')", "stop", "ok", AT, "click", ()),  # 1.5
    ("click(point='<point>512 300</point>')", "stop", "ok", AT, "click", ()),  # no heading
    ("(512,300)", "stop", "ok", AT, None, ()),  # the short form
    ("<|box_start|>(512,300)<|box_end|>", "stop", "ok", AT, None, ()),
    ("Action: click(start_box='(512, 300)')<|im_end|>", "stop", "ok", AT, "click", ()),
    ("Thought: The button (1,2) is left.\nAction: click(start_box='(512,300)')", "stop", "ok", AT,
     "click", ("reasoning",)),  # numbers of a thought are no answer
    ("Thought: I see (512,300).", "stop", "unparseable", None, None,
     ("no_action", "reasoning")),  # a thought alone is never harvested
    ("Thought: I see (512,300).", "length", "truncated", None, None, ("no_action", "reasoning")),
    ("Reflection: no.\nAction_Summary: clic\nAction: click(start_box='(512,300)')", "stop", "ok",
     AT, "click", ("reasoning",)),
    ("Action: click(start_box='(100,200,300,260)')", "stop", "ok", BOX, "click",
     (*CENTRE, "shape_mismatch")),  # a box: its centre
    ("Action: click(start_box='<|box_start|>(100,200),(300,260)<|box_end|>')", "stop", "ok", BOX,
     "click", (*CENTRE, "shape_mismatch", "text_around")),
    ("Action: left_double(point='<point>512 300</point>')", "stop", "ok", AT, "left_double",
     ("other_action",)),
    ("Action: drag(start_box='(1,2)', end_box='(512,300)')", "stop", "unparseable", None, None,
     ("other_action", "several_answers")),  # two places
    ("Action: finished()", "stop", "unparseable", None, None, (*BAD, "other_action")),
    ("Action: wait()", "stop", "unparseable", None, None, (*BAD, "other_action")),
    ("Action: click(start_box='=')", "stop", "unparseable", None, None, BAD),  # no number
    ("Action: click(start_box='(a,b)')", "stop", "unparseable", None, None, BAD),
    ("Action: click(start_box='(512,300)')\nAction: click(start_box='(1,2)')", "stop",
     "unparseable", None, None, ("several_answers",)),
    ("Action: click(start_box='(512,300)')\n\nclick(start_box='(512,300)')", "stop", "ok", AT,
     "click", ("repeated_answer", "text_around")),
    ("Action: click(start_box='(51", "length", "truncated", None, None, ("unclosed",)),
    ("(-1,-1)", "stop", "out_of_frame", None, None, ("refusal_like",)),  # no published refusal
    ("Action: click(start_box='(1003,300)')", "stop", "ok", (1000, 300), "click", ("clipped",)),
    ("Action: click(start_box='(1800,300)')", "stop", "out_of_frame", None, None, ()),
    ("Action:", "stop", "unparseable", None, None, ("no_action",)),
    ("", "stop", "no_answer", None, None, ()),
    ("<think>(1,2)</think>Action: click(start_box='(512,300)')", "stop", "ok", AT, "click",
     ("reasoning",)),
]  # fmt: skip

BODY = '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [512, 300]}}'
OTHER = BODY.replace("512", "1")
TOOL_CALL: list[Row] = [
    (f"<tool_call>\n{BODY}\n</tool_call>", "stop", "ok", AT, "left_click", ()),  # published form
    (f"<tool_call>\n{BODY}\n</tool_call><|im_end|>", "stop", "ok", AT, "left_click", ()),
    (f"<tool_call>{BODY}", "stop", "ok", AT, "left_click", ()),  # the end tag is lost
    (BODY, "stop", "ok", AT, "left_click", ()),  # the tags are special tokens that were dropped
    (BODY.replace("left_click", "mouse_move"), "stop", "ok", AT, "mouse_move", ()),  # "Hover"
    (BODY.replace("left_click", "right_click"), "stop", "ok", AT, "right_click",
     ("other_action",)),
    ('{"action": "left_click", "coordinate": [512, 300]}', "stop", "ok", AT, "left_click",
     ("bare_call",)),  # arguments alone
    (f"I will click.\n<tool_call>{BODY}</tool_call>", "stop", "ok", AT, "left_click",
     ("text_around",)),
    (f"```json\n{BODY}\n```", "stop", "ok", AT, "left_click", ("fenced",)),
    (f"<think>{OTHER}</think><tool_call>{BODY}</tool_call>", "stop", "ok", AT, "left_click",
     ("reasoning",)),  # drafts are not calls
    (BODY.replace("]}}", "],}}"), "stop", "ok", AT, "left_click", ("trailing_comma",)),
    (BODY.replace("[512, 300]", '"(512, 300)"'), "stop", "ok", AT, "left_click",
     ("number_as_text",)),
    (BODY.replace("[512, 300]", "[100, 200, 300, 260]"), "stop", "ok", BOX, "left_click",
     (*CENTRE, "shape_mismatch")),  # a box: its centre
    (f"<tool_call>{BODY}</tool_call><tool_call>{BODY}</tool_call>", "stop", "ok", AT, "left_click",
     ("repeated_items", "several_calls")),
    (f"<tool_call>{BODY}</tool_call><tool_call>{OTHER}</tool_call>", "stop", "unparseable", None,
     None, ("several_answers", "several_calls")),  # one place was asked for
    ('{"name": "computer_use", "arguments": {"action": "terminate", "status": "failure"}}', "stop",
     "unparseable", None, None, (*BAD, "other_action")),  # gives up, in no published way
    (BODY.replace("512, 300", "512"), "stop", "unparseable", None, None, BAD),
    (BODY.replace("512", "NaN"), "stop", "unparseable", None, None, ("non_finite",)),
    (BODY.replace("512", "1003"), "stop", "ok", (1000, 300), "left_click", ("clipped",)),
    (BODY.replace("512", "5120"), "stop", "out_of_frame", None, None, ()),
    (BODY.replace("512, 300", "-1, -1"), "stop", "out_of_frame", None, None, ("refusal_like",)),
    (f"<tool_call>\n{BODY[:-8]}", "length", "truncated", None, None, ("unclosed",)),
    (f"<tool_call>\n{BODY[:-8]}", "stop", "unparseable", None, None, ("unclosed",)),
    ('[{"bbox_2d": [1, 2, 3, 4]}]', "stop", "unparseable", None, None, ("other_form",)),
    ("", "stop", "no_answer", None, None, ()),
    ("No such element.", "stop", "unparseable", None, None, ("no_json",)),
]  # fmt: skip

HOLO15 = '{"action": "click_absolute", "x": 512, "y": 300}'
CLICK_ACTION: list[Row] = [
    (HOLO15, "stop", "ok", AT, "click_absolute", ()),  # Holo1.5's published form
    ('{"action":"click","x":512,"y":300}', "stop", "ok", AT, "click", ()),  # Holo1's
    ('{"x": 512, "y": 300}', "stop", "ok", AT, None, ("other_action",)),  # the default left out
    ('{"action": "write", "x": 512, "y": 300}', "stop", "ok", AT, "write", ("other_action",)),
    ('{"action": 7, "x": 512, "y": 300}', "stop", "ok", AT, None, ("other_action",)),
    (f"{HOLO15}<|im_end|>", "stop", "ok", AT, "click_absolute", ()),
    (f"```json\n{HOLO15}\n```", "stop", "ok", AT, "click_absolute", ("fenced",)),
    (f"Aquí: {HOLO15}", "stop", "ok", AT, "click_absolute", ("text_around",)),
    (HOLO15.replace("}", ",}"), "stop", "ok", AT, "click_absolute", ("trailing_comma",)),
    (HOLO15.replace("512", '"512"'), "stop", "ok", AT, "click_absolute", ("number_as_text",)),
    (HOLO15.replace("512", '"512,0"'), "stop", "ok", AT, "click_absolute",
     ("decimal_comma", "number_as_text")),  # a Spanish decimal
    (HOLO15.replace("512", '"1,234"'), "stop", "unparseable", None, None,
     ("ambiguous_decimal", *BAD)),  # 1.234 or 1234?
    (HOLO15.replace("}", ', "element": "a"}'), "stop", "ok", AT, "click_absolute", ("extra_keys",)),
    (HOLO15.replace("512", "NaN"), "stop", "unparseable", None, None, ("non_finite",)),
    (HOLO15.replace("512", "1003"), "stop", "ok", (1000, 300), "click_absolute", ("clipped",)),
    (HOLO15.replace("512", "1800"), "stop", "out_of_frame", None, None, ()),
    (HOLO15.replace("512", "-1").replace("300", "-1"), "stop", "out_of_frame", None, None,
     ("refusal_like",)),  # a third party's sign, no click in the corner
    ('{"action": "click_absolute"}', "stop", "unparseable", None, None, BAD),
    (HOLO15[:-3], "length", "truncated", None, None, ("unclosed",)),
    ("{", "length", "truncated", None, None, ("unclosed",)),  # seen with a limit of 32 tokens
    (f"{HOLO15} {HOLO15.replace('512', '1')}", "stop", "unparseable", None, None,
     ("several_answers",)),
    (f"{HOLO15} {HOLO15}", "stop", "ok", AT, "click_absolute", ("repeated_answer",)),
    ("[]", "stop", "unparseable", None, None, ("other_form",)),  # it cannot say "absent"
    ("Click(512, 300)", "stop", "unparseable", None, None, ("no_json",)),  # another family's
    (f"<think>no</think>{HOLO15}", "stop", "ok", AT, "click_absolute", ("reasoning",)),
    ("", "stop", "no_answer", None, None, ()),
]  # fmt: skip

TABLES = {
    "ref_boxes": REF_BOXES,
    "ui_tars": UI_TARS,
    "tool_call": TOOL_CALL,
    "click_action": CLICK_ACTION,
}


@pytest.mark.parametrize(("name", "answer_format", "frame", "row"), golden_cases(TABLES))
def test_golden(name: str, answer_format: str, frame: FrameKind, row: Row) -> None:
    answer, finish, status, expected, word, flags = row
    parsed = parse_answer(answer, finish, answer_format, frame, SEEN, QueryKind.GROUNDING)
    assert (parsed.status, parsed.flags) == (status, tuple(sorted(flags)))
    if expected is None:
        assert parsed.items == ()
    else:
        (item,) = parsed.items
        assert halved_place(item) == pytest.approx(expected)
        assert (item.label or item.action) == word
