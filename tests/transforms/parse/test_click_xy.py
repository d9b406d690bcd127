"""`click_xy`, literal answer by literal answer, on a 1920x1080 screen shown as 1000x1000."""

import pytest

from schemas.codes import QueryKind
from schemas.geometry import FrameKind, SeenImage, Size
from transforms.parse import parse_answer
from transforms.profiles.load import list_profiles, load_profile

# Shown at 1000x1000: thousandths and pixels of the shown image are the same numbers.
FULL_HD = SeenImage.unchanged(Size(1920, 1080)).resized(Size(1000, 1000))


def frames() -> list[tuple[str, FrameKind]]:
    """Each profile with this format, in its own frame; an unknown one as its nearest relative."""
    profiles = [load_profile(name) for name in list_profiles()]
    return [
        (profile.name, profile.frame or FrameKind.NORM_1000)
        for profile in profiles
        if profile.tasks[QueryKind.GROUNDING].answer_format == "click_xy"
    ]


# (answer, finish reason, status, click in original px or None, flags)
GOLDEN = [
    ('{"x":512,"y":300}', "stop", "ok", (983.04, 324.0), ()),  # the form asked for
    ('{"x": 0, "y": 0}', "stop", "ok", (0.0, 0.0), ()),  # first corner
    ('{"x":1000,"y":1000}', "stop", "ok", (1920.0, 1080.0), ()),  # last corner is on the screen
    ('{"x":512.5,"y":300.25}', "stop", "ok", (984.0, 324.27), ()),  # fractions are fine
    ('{"y":300,"x":512}', "stop", "ok", (983.04, 324.0), ()),  # order of keys means nothing
    ('```json\n{"x":512,"y":300}\n```', "stop", "ok", (983.04, 324.0), ("fenced",)),
    (
        'El botón está aquí: {"x":512,"y":300}',
        "stop",
        "ok",
        (983.04, 324.0),
        ("text_around",),
    ),  # prose before
    (
        '{"x":512,"y":300} ¡Listo!',
        "stop",
        "ok",
        (983.04, 324.0),
        ("text_around",),
    ),  # text after JSON
    ('{"x":512,"y":300,}', "stop", "ok", (983.04, 324.0), ("trailing_comma",)),
    (
        'quizá {"x":10,"y":10}... no.</think>{"x":512,"y":300}',
        "stop",
        "ok",
        (983.04, 324.0),
        ("reasoning",),
    ),  # drafts in reasoning are not answers
    ('<think>a</think>\n\n{"x":512,"y":300}', "stop", "ok", (983.04, 324.0), ("reasoning",)),
    ('<think>{"x":512,"y":300}', "stop", "no_answer", None, ("reasoning",)),  # never left thinking
    ('<think>{"x":512,"y":300}', "length", "truncated", None, ("reasoning",)),  # cut in thought
    ("", "stop", "no_answer", None, ()),
    (" \n\t ", "stop", "no_answer", None, ()),
    ("no veo ese botón", "stop", "unparseable", None, ("no_json",)),
    ("{", "length", "truncated", None, ("unclosed",)),  # seen with a limit of 32 tokens
    ("{", "stop", "unparseable", None, ("unclosed",)),
    ('{\n"x":' + " " * 4000, "length", "truncated", None, ("unclosed", "whitespace_loop")),
    ('{"x":512,"y":300}', "length", "ok", (983.04, 324.0), ("token_limit",)),  # complete anyway
    ('{"x":1003,"y":300}', "stop", "ok", (1920.0, 324.0), ("clipped",)),  # 0.3 % outside
    ('{"x":-5,"y":300}', "stop", "ok", (0.0, 324.0), ("clipped",)),
    ('{"x":1020,"y":300}', "stop", "ok", (1920.0, 324.0), ("clipped",)),  # 2 %: the last to pass
    ('{"x":1021,"y":300}', "stop", "out_of_frame", None, ()),  # 2.1 %
    ('{"x":1800,"y":300}', "stop", "out_of_frame", None, ()),  # pixels, not thousandths
    ('{"x":' + "9" * 400 + ',"y":1}', "stop", "out_of_frame", None, ()),  # 10**400
    ('{"x":1e400,"y":3}', "stop", "out_of_frame", None, ()),  # beyond a float
    ('{"x":NaN,"y":3}', "stop", "unparseable", None, ("non_finite",)),  # not JSON
    ('{"x":-Infinity,"y":3}', "stop", "unparseable", None, ("non_finite",)),
    ('{"x":true,"y":300}', "stop", "unparseable", None, ("no_coordinates",)),  # not a number
    ('{"x":null,"y":300}', "stop", "unparseable", None, ("no_coordinates",)),
    ('{"x":"=","y":"a"}', "stop", "unparseable", None, ("no_coordinates",)),
    ("{}", "stop", "unparseable", None, ("no_coordinates",)),
    ('{"x":"512","y":"300"}', "stop", "ok", (983.04, 324.0), ("number_as_text",)),
    (
        '{"x":"512,5","y":"300"}',
        "stop",
        "ok",
        (984.0, 324.0),
        ("decimal_comma", "number_as_text"),
    ),  # Spanish decimal comma
    (
        '{"x":"1,234","y":"5"}',
        "stop",
        "unparseable",
        None,
        ("ambiguous_decimal", "no_coordinates", "number_as_text"),
    ),  # 1.234 or 1234?
    ('{"x":"1.234,5","y":"5"}', "stop", "unparseable", None, ("no_coordinates", "number_as_text")),
    ('{"x":0,53,"y":0,21}', "stop", "unparseable", None, ("no_json",)),  # commas split it
    ('{"x":1,"x":900,"y":5}', "stop", "unparseable", None, ("duplicate_key",)),  # which one?
    ('{"x":1,"x":1,"y":5}', "stop", "ok", (1.92, 5.4), ("duplicate_key",)),  # the same twice
    ('{"x":1,"y":2} {"x":900,"y":2}', "stop", "unparseable", None, ("several_answers",)),
    ('{"x":1,"y":2}\n{"x":1,"y":2}', "stop", "ok", (1.92, 2.16), ("repeated_answer",)),
    ('{"action":"click","x":1,"y":2}', "stop", "ok", (1.92, 2.16), ("extra_keys",)),
    ("[]", "stop", "unparseable", None, ("other_form",)),  # this family cannot say "absent"
    ("[512,300]", "stop", "unparseable", None, ("other_form",)),
    ('[{"x":512,"y":300}]', "stop", "unparseable", None, ("other_form",)),
    ("[" * 100_000, "stop", "unparseable", None, ("nested_too_deep",)),
    ('{"x":' * 20 + "1" + "}" * 20, "stop", "unparseable", None, ("nested_too_deep",)),
    ("\ufeff" + '{"x":512,"y":300}', "stop", "ok", (983.04, 324.0), ()),  # byte order mark
]


@pytest.mark.parametrize(("profile", "frame"), frames())
@pytest.mark.parametrize(("text", "finish", "status", "click", "flags"), GOLDEN)
def test_golden(
    text: str,
    finish: str,
    status: str,
    click: tuple[float, float] | None,
    flags: tuple[str, ...],
    profile: str,
    frame: FrameKind,
) -> None:
    parsed = parse_answer(text, finish, "click_xy", frame, FULL_HD)
    assert parsed.status == status
    assert parsed.flags == flags
    if click is None:
        assert parsed.items == ()
    else:
        (item,) = parsed.items
        assert (item.point.x, item.point.y) == pytest.approx(click)
        assert (item.box, item.label, item.role) == (None, None, None)
