"""`qwen_json`, literal answer by literal answer, on a 2000x1000 screen."""

import pytest

from schemas.codes import QueryKind, Role
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.records import Item, Parsed
from transforms.parse import parse_answer
from transforms.profiles.load import list_profiles, load_profile

SCREEN = SeenImage.unchanged(Size(2000, 1000))  # norm_1000: x doubles, y stays
ONE = '{"bbox_2d":[100,200,300,260],"label":"Guardar"}'
BOX = (200, 200, 600, 260)
CENTRE = ("point_from_box",)

# Thousandths and pixels of this shown image are the same numbers.
SHOWN = SCREEN.resized(Size(1000, 1000))


def frames() -> list[tuple[str, FrameKind]]:
    """Each profile with this format, in its own frame; an unknown one as its nearest relative."""
    profiles = [load_profile(name) for name in list_profiles()]
    return [
        (profile.name, profile.frame or FrameKind.NORM_1000)
        for profile in profiles
        if profile.tasks[QueryKind.GROUNDING].answer_format == "qwen_json"
    ]


def corners(parsed: Parsed) -> list[tuple[float, ...] | None]:
    return [item.box and item.box.corners for item in parsed.items]


# (answer, finish reason, status, boxes in original px, flags)
GOLDEN = [
    (f"[{ONE}]", "stop", "ok", [BOX], CENTRE),  # the published form
    (ONE, "stop", "ok", [BOX], CENTRE),  # one object without its list
    (f"```json\n[{ONE}]\n```", "stop", "ok", [BOX], ("fenced", "point_from_box")),
    (f"Claro:\n```\n[{ONE}]\n```", "stop", "ok", [BOX], ("fenced", *CENTRE, "text_around")),
    ("[]", "stop", "absent", [], ()),  # nothing fits
    (" [ ] ", "stop", "absent", [], ()),
    ("```json\n[]\n```", "stop", "absent", [], ("fenced",)),
    ("", "stop", "no_answer", [], ()),
    ("There are none.", "stop", "unparseable", [], ("no_json",)),
    (f"[{ONE},{ONE}]", "stop", "ok", [BOX], (*CENTRE, "repeated_items")),
    (
        '[{"bbox_2d":[300,260,100,200]}]',
        "stop",
        "ok",
        [BOX],
        ("corners_swapped", "point_from_box"),
    ),  # reordered, and said so
    (
        '[{"bbox_2d":[806,170,1003,223]}]',
        "stop",
        "ok",
        [(1612, 170, 2000, 223)],
        ("clipped", "point_from_box"),
    ),
    ('[{"bbox_2d":[806,170,1103,223]}]', "stop", "out_of_frame", [], ()),
    ('[{"bbox_2d":[433,516,433,522]}]', "stop", "degenerate", [], ()),  # no width
    ('[{"bbox_2d":[780,603,780,603]}]', "stop", "degenerate", [], ()),  # no area at all
    ('[{"bbox_2d":[1001,0,1010,9]}]', "stop", "degenerate", [], ("clipped",)),  # all off screen
    (
        '[{"bbox_2d":[0,53,0,21]}]',
        "stop",
        "degenerate",
        [],
        ("ambiguous_decimal", "corners_swapped"),
    ),  # 0,53 and 0,21?
    (
        f"[{ONE}" + ',{"bbox_2d":[11,',
        "length",
        "truncated",
        [BOX],
        ("items_before_cut", "point_from_box", "unclosed"),
    ),  # dense screen: what was complete is kept, for a reviewer
    (f"[{ONE}" + ',{"bbox_2d":[11,', "stop", "unparseable", [], ("unclosed",)),
    ('[{"bbox_2d":[1,2,3]}]', "stop", "unparseable", [], ("no_coordinates",)),  # three numbers
    ('[{"bbox_2d":[1,2,3,4,5]}]', "stop", "unparseable", [], ("no_coordinates",)),
    ('[{"bbox_2d":[1,2,"a",4]}]', "stop", "unparseable", [], ("no_coordinates",)),
    (
        '[{"bbox_2d":"(100, 200, 300, 260)"}]',
        "stop",
        "ok",
        [BOX],
        ("number_as_text", "point_from_box"),
    ),  # one reading only
    ('[{"label":"Guardar"}]', "stop", "unparseable", [], ("no_coordinates",)),
    ("[100,200,300,260]", "stop", "unparseable", [], ("other_form",)),  # not our form
    ('{"bbox_2d":[1,2,3,4],"bbox_2d":[5,6,7,8]}', "stop", "unparseable", [], ("duplicate_key",)),
    (f"[{ONE}] [{ONE}]", "stop", "ok", [BOX], (*CENTRE, "repeated_answer")),
    (f"[{ONE}] []", "stop", "unparseable", [], ("several_answers",)),  # there, and not there
    (
        f'[{ONE},{{"bbox_2d":[5,5,5,9]}}]',
        "stop",
        "ok",
        [BOX],
        ("dropped_degenerate", "point_from_box"),
    ),  # one bad element leaves the others alone
    (
        f'[{ONE},{{"bbox_2d":[5,5,5000,9]}},null,"x"]',
        "stop",
        "ok",
        [BOX],
        (
            "dropped_out_of_frame",
            "dropped_unparseable",
            "no_coordinates",
            "point_from_box",
        ),
    ),
    (
        '[{"bbox_2d":["100","200","300","260"]}]',
        "stop",
        "ok",
        [BOX],
        ("number_as_text", "point_from_box"),
    ),
    ('[{"bbox_2d":[true,2,3,4]}]', "stop", "unparseable", [], ("no_coordinates",)),
    ('[{"bbox_2d":[NaN,2,3,4]}]', "stop", "unparseable", [], ("non_finite",)),
    ("null", "stop", "unparseable", [], ("no_json",)),
    ("[null]", "stop", "unparseable", [], ("other_form",)),
    ("[[[[]]]]", "stop", "unparseable", [], ("other_form",)),
]


@pytest.mark.parametrize(("profile", "frame"), frames())
@pytest.mark.parametrize(("text", "finish", "status", "boxes", "flags"), GOLDEN)
def test_golden(
    text: str,
    finish: str,
    status: str,
    boxes: list[tuple[float, ...]],
    flags: tuple[str, ...],
    profile: str,
    frame: FrameKind,
) -> None:
    parsed = parse_answer(text, finish, "qwen_json", frame, SHOWN)
    assert parsed.status == status
    assert corners(parsed) == boxes
    assert parsed.flags == tuple(sorted(flags))


def only(
    text: str, frame: FrameKind = FrameKind.NORM_1000, seen: SeenImage = SCREEN
) -> tuple[Item, tuple[str, ...]]:
    parsed = parse_answer(text, "stop", "qwen_json", frame, seen)
    (item,) = parsed.items
    return item, parsed.flags


def test_box_gives_its_centre_as_click() -> None:
    item, _ = only(f"[{ONE}]")
    assert (item.point.x, item.point.y) == (400, 230)


def test_point_stays_a_point() -> None:
    item, flags = only('[{"point_2d":[500,300],"label":"Guardar"}]')
    assert (item.point.x, item.point.y, item.box) == (1000, 300, None)
    assert flags == ()


def test_point_and_box_are_both_kept() -> None:
    item, flags = only('{"bbox_2d":[100,200,300,260],"point_2d":[110,210]}')
    assert (item.point.x, item.point.y) == (220, 210)
    assert item.box.corners == BOX
    assert flags == ()


def test_point_outside_its_box_is_flagged() -> None:
    _, flags = only('{"bbox_2d":[100,200,300,260],"point_2d":[900,900]}')
    assert flags == ("point_outside_box",)


def test_two_numbers_under_the_box_key_are_a_point_not_a_box() -> None:
    item, flags = only('[{"bbox_2d":[500,300]}]')
    assert (item.point.x, item.point.y, item.box) == (1000, 300, None)
    assert flags == ("shape_mismatch",)


def test_four_numbers_under_the_point_key_are_a_box() -> None:
    item, flags = only('[{"point_2d":[100,200,300,260]}]')
    assert item.box.corners == BOX
    assert flags == ("point_from_box", "shape_mismatch")


@pytest.mark.parametrize("label", ["button", "Button", "BUTTON"])
def test_label_that_is_a_role_code_becomes_the_role(label: str) -> None:
    item, _ = only(f'[{{"bbox_2d":[1,2,3,4],"label":"{label}"}}]')
    assert (item.role, item.label) == (Role.BUTTON, None)


def test_other_label_stays_text_in_nfc() -> None:
    item, _ = only('[{"bbox_2d":[1,2,3,4],"label":"Boto\u0301n de an\u0303o"}]')
    assert (item.role, item.label) == (None, "Botón de año")


def test_label_with_json_signs_is_kept_byte_for_byte() -> None:
    plain, flags = only('{"label":"Buscar, ] ya","bbox_2d":[1,2,3,4]}')
    repaired, more = only('{"label":"Buscar, ] ya","bbox_2d":[1,2,3,4],}')
    assert plain.label == repaired.label == "Buscar, ] ya"
    assert flags == ("point_from_box",)
    assert more == ("point_from_box", "trailing_comma")


def test_fence_signs_inside_a_label_belong_to_it() -> None:
    item, _ = only('```json\n{"label":"usa ```json aquí","bbox_2d":[1,2,3,4]}\n```')
    assert item.label == "usa ```json aquí"


def test_thinking_tag_inside_a_label_of_whole_json_is_no_reasoning() -> None:
    item, flags = only('[{"label":"<think>","bbox_2d":[1,2,3,4]}]')
    assert item.label == "<think>"
    assert flags == ("point_from_box",)


def test_raw_line_break_in_a_label_is_read_and_flagged() -> None:
    item, flags = only('[{"label":"Guardar\ncambios","bbox_2d":[1,2,3,4]}]')
    assert item.label == "Guardar\ncambios"
    assert flags == ("point_from_box", "raw_control_character")


def test_lone_surrogate_and_nul_are_replaced() -> None:
    item, flags = only('[{"label":"\\ud83d Guardar\\u0000","bbox_2d":[1,2,3,4]}]')
    assert item.label == "\ufffd Guardar\ufffd"
    assert flags == ("invalid_unicode", "point_from_box")


def test_replacement_character_of_the_detokenizer_is_flagged() -> None:
    item, flags = only('[{"label":"Contrase\ufffda","bbox_2d":[1,2,3,4]}]')
    assert item.label == "Contrase\ufffda"
    assert flags == ("point_from_box", "replacement_character")


def test_seen_pixels_are_undone_to_the_original() -> None:
    seen = SeenImage.unchanged(Size(1920, 1080)).resized(Size(1316, 728))
    item, _ = only('[{"bbox_2d":[648,354,668,374]}]', FrameKind.SEEN_PX, seen)
    assert (item.point.x, item.point.y) == pytest.approx((960, 540), abs=1)


def test_two_resizes_are_undone_together() -> None:
    seen = SeenImage.unchanged(Size(3840, 2160)).resized(Size(1920, 1080)).resized(Size(1316, 728))
    item, _ = only('[{"point_2d":[658,364]}]', FrameKind.SEEN_PX, seen)
    assert (item.point.x, item.point.y) == pytest.approx((1920, 1080))


def test_same_numbers_in_another_frame_are_another_place() -> None:
    seen = SeenImage.unchanged(Size(1920, 1080)).resized(Size(1316, 728))
    thousandths, _ = only('[{"point_2d":[500,250]}]', FrameKind.NORM_1000, seen)
    pixels, _ = only('[{"point_2d":[500,250]}]', FrameKind.SEEN_PX, seen)
    assert (thousandths.point.x, thousandths.point.y) == pytest.approx((960, 270))
    assert (pixels.point.x, pixels.point.y) == pytest.approx((729.48, 370.88), abs=0.01)


def test_padding_beyond_the_tolerance_is_out_of_frame() -> None:
    padded = SeenImage.unchanged(Size(500, 500)).placed(Size(1000, 500), left=0, top=0)
    parsed = parse_answer(
        '[{"point_2d":[800,500]}]', "stop", "qwen_json", FrameKind.NORM_1000, padded
    )
    assert parsed.status == "out_of_frame"
