"""Answers that are coordinates as text, literal by literal, for each profile that has the form.

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
Row = tuple[str, str, str, Place, tuple[str, ...]]
BOX = ("point_from_box",)
WRONG_SHAPE = ("point_from_box", "shape_mismatch")

# (answer, finish reason, status, place, flags)
COMMON: list[Row] = [
    ("", "stop", "no_answer", None, ()),  # the model said nothing
    ("   \n", "stop", "no_answer", None, ()),
    ("I cannot find it.", "stop", "unparseable", None, ("no_coordinates",)),  # prose is no place
    ("<think>(1, 2)</think>", "stop", "no_answer", None, ("reasoning",)),  # a draft only
    ("<think>(1, 2)", "length", "truncated", None, ("reasoning",)),  # cut while thinking
    ("(512,", "length", "truncated", None, ("unclosed",)),  # cut inside the pair
    ("(512,", "stop", "unparseable", None, ("no_coordinates",)),  # never closed
    ("(a, b)", "stop", "unparseable", None, ("no_coordinates",)),  # letters for numbers
    ("(nan, 3)", "stop", "unparseable", None, ("no_coordinates",)),  # not a number
    ("(512)", "stop", "unparseable", None, ("no_coordinates",)),  # one number is no pair
    ("512", "stop", "unparseable", None, ("no_coordinates",)),
]  # fmt: skip

POINT: list[Row] = [
    *COMMON,
    ("[1, 2, 3]", "stop", "unparseable", None, ("no_coordinates",)),  # neither point nor box
    ("(512, 300)", "stop", "ok", (512, 300), ()),  # the published form
    ("(512,300)", "stop", "ok", (512, 300), ()),  # without the blank
    ("(513.\t592, 351)(513.\t592, 351)", "stop", "unparseable", None,
     ("no_coordinates",)),  # no numbers; Python before 3.11.5 saw some with possessive groups
    (" (512, 300)\n", "stop", "ok", (512, 300), ()),  # blanks around
    ("(512, 300)<|im_end|>", "stop", "ok", (512, 300), ()),  # the turn's end is no text
    ("(0, 0)", "stop", "ok", (0, 0), ()),  # first corner
    ("(1000, 1000)", "stop", "ok", (1000, 1000), ()),  # last corner
    ("(512.5, 300.25)", "stop", "ok", (512.5, 300.25), ()),  # fractions
    ("[512, 300]", "stop", "ok", (512, 300), ()),  # square brackets mean the same
    ("(512 300)", "stop", "ok", (512, 300), ()),  # a blank separates too
    ("512, 300", "stop", "ok", (512, 300), ("bare_numbers",)),  # brackets forgotten
    ("(x=512, y=300)", "stop", "ok", (512, 300), ("named_numbers",)),  # named
    ("(y=300, x=512)", "stop", "ok", (512, 300), ("named_numbers",)),  # names win over order
    ("(x=512, x=300)", "stop", "unparseable", None, ("named_numbers", "no_coordinates")),
    ("<think>hm</think>(512, 300)", "stop", "ok", (512, 300), ("reasoning",)),
    ("(9, 9) no </think>(512, 300)", "stop", "ok", (512, 300), ("reasoning",)),  # tag unopened
    ("The button is at (512, 300).", "stop", "ok", (512, 300), ("text_around",)),
    ("```\n(512, 300)\n```", "stop", "ok", (512, 300), ("text_around",)),
    ("<point>512 300</point>", "stop", "ok", (512, 300), ()),  # another family's tag
    ("(512, 300) (512, 300)", "stop", "ok", (512, 300), ("repeated_answer", "text_around")),
    ("(512, 300) or (1, 2)", "stop", "unparseable", None, ("several_answers",)),  # which one?
    ("(1, 2), (512, 300)", "stop", "unparseable", None, ("several_answers",)),
    ("<box>100 200 300 260</box>", "stop", "ok", (100, 200, 300, 260), WRONG_SHAPE),  # its centre
    ("(100, 200, 300, 260)", "stop", "ok", (100, 200, 300, 260), WRONG_SHAPE),
    ("[[100, 200], [300, 260]]", "stop", "ok", (100, 200, 300, 260), (*WRONG_SHAPE, "text_around")),
    ("(1003, 300)", "stop", "ok", (1000, 300), ("clipped",)),  # 0.3 % outside
    ("(1100, 300)", "stop", "out_of_frame", None, ()),  # 10 % outside
    ("(" + "9" * 500 + ", 3)", "stop", "out_of_frame", None, ()),  # beyond a float
    ("(0,53, 0,21)", "stop", "unparseable", None, ("ambiguous_decimal", "no_coordinates")),
    ("(0,53; 0,21)", "stop", "ok", (0.53, 0.21), ("decimal_comma", "semicolons")),  # one reading
    ("(512, 300)", "length", "ok", (512, 300), ("token_limit",)),  # complete all the same
    ("(512, 300) (1,", "length", "truncated", None, ("unclosed",)),  # a second one was begun
    ('{"x": 512, "y": 300}', "stop", "unparseable", None, ("no_coordinates",)),  # another form
]  # fmt: skip

REFUSAL: list[Row] = [
    *POINT,
    ("[-1,-1]", "stop", "absent", None, ()),  # the published refusal
    ("[-1, -1]<|im_end|>", "stop", "absent", None, ()),
    ("(-1, -1)", "stop", "absent", None, ()),
    ("[-1,-1,-1,-1]", "stop", "absent", None, ("shape_mismatch",)),  # refusing a box
    ("The task is infeasible: [-1,-1]", "stop", "absent", None, ("text_around",)),
    ("[-1,-1] [512,300]", "stop", "unparseable", None, ("several_answers",)),  # there and not
    ("[-1,300]", "stop", "ok", (0, 300), ("clipped",)),  # only one is below: an edge, no refusal
    ("[-5,-5]", "stop", "out_of_frame", None, ("refusal_like",)),  # not the published sign
]  # fmt: skip

NO_REFUSAL: list[Row] = [
    ("(-1, -1)", "stop", "out_of_frame", None, ("refusal_like",)),  # no click in the corner
    ("(-1,-1)", "stop", "out_of_frame", None, ("refusal_like",)),
    ("(-1, 300)", "stop", "ok", (0, 300), ("clipped",)),
]

CLICK: list[Row] = [
    *COMMON,
    ("Click(512, 300)", "stop", "ok", (512, 300), ()),  # the published form
    ("Click(512,300)", "stop", "ok", (512, 300), ()),
    ("click(512, 300)", "stop", "ok", (512, 300), ()),  # case means nothing
    ("Click (512, 300)", "stop", "ok", (512, 300), ()),
    ("Click(x=512, y=300)", "stop", "ok", (512, 300), ("named_numbers",)),
    ("Click(512, 300)<|im_end|>", "stop", "ok", (512, 300), ()),
    ("(512, 300)", "stop", "ok", (512, 300), ("text_around",)),  # the word is missing
    ("Click(512, 300).", "stop", "ok", (512, 300), ("text_around",)),
    ("I would Click(512, 300)", "stop", "ok", (512, 300), ("text_around",)),
    ("Click(512, 300)\nClick(512, 300)",
     "stop", "ok", (512, 300), ("repeated_answer", "text_around")),
    ("Click(512, 300)\nClick(1, 2)", "stop", "unparseable", None, ("several_answers",)),
    ("Click(512, 300, 600, 400)", "stop", "ok", (512, 300, 600, 400), WRONG_SHAPE),
    ("Click(1003, 300)", "stop", "ok", (1000, 300), ("clipped",)),
    ("Click(1500, 300)", "stop", "out_of_frame", None, ()),
    ("Click(-1, -1)", "stop", "out_of_frame", None, ("refusal_like",)),
    ("Click(512", "length", "truncated", None, ("unclosed",)),
    ("Click()", "stop", "unparseable", None, ("no_coordinates",)),
    ("Click(0,53, 0,21)", "stop", "unparseable", None, ("ambiguous_decimal", "no_coordinates")),
    ("Click(1,2)</think>Click(512, 300)", "stop", "ok", (512, 300), ("reasoning",)),
]  # fmt: skip

TAGGED: list[Row] = [
    *COMMON,
    ("<point>512, 300</point>", "stop", "ok", (512, 300), ()),  # as public harnesses read it
    ("<point>512 300</point>", "stop", "ok", (512, 300), ()),
    ("<point>512, 300</point><|end|>", "stop", "ok", (512, 300), ()),
    ("<box>100, 200, 300, 260</box>", "stop", "ok", (100, 200, 300, 260), BOX),  # what is asked
    ("<bbox>100, 200, 300, 260</bbox>", "stop", "ok", (100, 200, 300, 260), BOX),
    ("[100, 200, 300, 260]", "stop", "ok", (100, 200, 300, 260), BOX),
    ("[[100, 200, 300, 260]]", "stop", "ok", (100, 200, 300, 260), BOX),
    ("100, 200, 300, 260", "stop", "ok", (100, 200, 300, 260), ("bare_numbers", *BOX)),
    ("(512, 300)", "stop", "ok", (512, 300), ()),
    ("<box>300, 260, 100, 200</box>",
     "stop", "ok", (100, 200, 300, 260), ("corners_swapped", *BOX)),
    ("<box>100, 200, 100, 260</box>", "stop", "degenerate", None, ()),  # no width
    ("<box>0,53,0,21</box>", "stop", "degenerate", None, ("ambiguous_decimal", "corners_swapped")),
    ("<point>1003, 300</point>", "stop", "ok", (1000, 300), ("clipped",)),
    ("<point>1200, 300</point>", "stop", "out_of_frame", None, ()),
    ("<point>512, 300</point> <point>1, 2</point>",
     "stop", "unparseable", None, ("several_answers",)),
    ("<point>512, 300</point><box>1 2 3 4</box>",
     "stop", "unparseable", None, ("several_answers",)),
    ("Here: <point>512, 300</point>", "stop", "ok", (512, 300), ("text_around",)),
    ("<point>512, 3", "length", "truncated", None, ("unclosed",)),
]  # fmt: skip

TABLES = {
    "point_text": [*POINT, *NO_REFUSAL],
    "point_or_refusal": REFUSAL,
    "click_text": CLICK,
    "tagged": TAGGED,
}


@pytest.mark.parametrize(("name", "answer_format", "frame", "row"), golden_cases(TABLES))
def test_golden(name: str, answer_format: str, frame: FrameKind, row: Row) -> None:
    answer, finish, status, expected, flags = row
    parsed = parse_answer(answer, finish, answer_format, frame, SEEN, QueryKind.GROUNDING)
    assert parsed.status == status
    places = [halved_place(item) for item in parsed.items]
    assert places == ([] if expected is None else [pytest.approx(expected)])
    assert parsed.flags == tuple(sorted(flags))
