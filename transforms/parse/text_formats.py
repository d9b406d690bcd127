"""Formats that write coordinates as text: one reader each, all built on `marks`."""

from __future__ import annotations

import re
from dataclasses import replace

from schemas.codes import SampleStatus
from transforms.parse.marks import HOLE, Mark, Marks, find_marks
from transforms.parse.places import RawPlace, clean_label
from transforms.parse.reading import AnswerReader, Reading, nothing_said, unreadable
from transforms.parse.text import split_reasoning

_POINT = re.compile(rf"{HOLE}")
_CLICK = re.compile(rf"click\s*+{HOLE}", re.IGNORECASE)
_BOX = re.compile(rf"(?:{HOLE}|\[\s*+{HOLE}\s*+\])")
_REFERENCE = re.compile(
    rf"(?:(?:<ref>|<\|object_ref_start\|>)[^<]*+(?:</ref>|<\|object_ref_end\|>))?\s*+"
    rf"(?:<box>|<\|box_start\|>|\[)?\s*+\[*+\s*+{HOLE}(?:\s*+,?+\s*+{HOLE})?\s*+\]*+\s*+"
    rf"(?:</box>|<\|box_end\|>|\])?"
)
_LABEL = re.compile(r"(?:<ref>|<\|object_ref_start\|>)([^<]*+)(?:</ref>|<\|object_ref_end\|>)")
_TAGGED = re.compile(r"<(?:point|box|bbox)>|<\|box_start\|>")


def read_click_text(text: str, cut: bool) -> Reading:
    """`Click(x, y)` (Holo1). It has no way to say "absent"."""
    return _one_place(text, _CLICK, box=False, cut=cut)


def read_point_text(text: str, cut: bool) -> Reading:
    """`(x, y)` and nothing else (UGround-V1, GTA1). It has no way to say "absent"."""
    return _one_place(text, _POINT, box=False, cut=cut)


def read_point_or_refusal(text: str, cut: bool) -> Reading:
    """`[x, y]`, or `[-1, -1]` when the target is not there (UI-Venus-1.5)."""
    reading = _one_place(text, _POINT, box=False, cut=cut)
    if len(reading.places) != 1:
        return reading
    numbers = reading.places[0].point or reading.places[0].box or ()
    if numbers and set(numbers) == {-1.0}:
        return Reading(status=SampleStatus.ABSENT, flags=reading.flags | reading.places[0].flags)
    return reading


def read_tagged(text: str, cut: bool) -> Reading:
    """`<point>x, y</point>` or four numbers (Phi-Ground, asked for a box, answers both)."""
    return _one_place(text, _BOX, box=None, cut=cut)


def read_ref_boxes(text: str, cut: bool) -> Reading:
    """Boxes with an optional name before each (OS-Atlas, InternVL).

    `<ref>name</ref><box>[[x1, y1, x2, y2]]</box>`, `[[x1, y1, x2, y2]]`, or the Qwen2-VL form
    `<|object_ref_start|>name<|object_ref_end|><|box_start|>(x1,y1),(x2,y2)<|box_end|>`, whose
    signs are lost where the engine skips special tokens.
    """
    body = split_reasoning(text)
    if not body.text:
        return nothing_said(body.flags, cut=cut, thinking=body.thinking)
    marks = find_marks(body.text)
    if not marks.found:
        return _no_marks(marks, body.flags, cut=cut)
    places = _paired(marks, body.text)
    known = _REFERENCE.sub("", marks.skeleton).strip(" ,\n\t[]")
    flags = body.flags | ({"text_around"} if known else frozenset())
    if cut and marks.open_end:
        return Reading(places, SampleStatus.TRUNCATED, flags | {"unclosed", "items_before_cut"})
    return Reading(places, None, flags)


def _paired(marks: Marks, text: str) -> tuple[RawPlace, ...]:
    """One place per box; two joined pairs of numbers are the two corners of one."""
    places: list[RawPlace] = []
    found, index = marks.found, 0
    label_end = 0
    label: str | None = None
    while index < len(found):
        mark = found[index]
        names = list(_LABEL.finditer(text, label_end, mark.start))
        label, noticed = clean_label(names[-1].group(1)) if names else (label, frozenset())
        following = found[index + 1] if index + 1 < len(found) else None
        if following and following.joined and _lengths(mark, following) == (2, 2):
            corners = (*(mark.numbers or ()), *(following.numbers or ()))
            mark = Mark(corners, mark.start, following.end, flags=mark.flags | following.flags)
            index += 1
        place = _place(mark, box=True)
        places.append(replace(place, label=label, flags=place.flags | noticed))
        label_end, index = mark.end, index + 1
    return tuple(places)


def _lengths(*marks: Mark) -> tuple[int, ...]:
    return tuple(len(mark.numbers or ()) for mark in marks)


def _place(mark: Mark, *, box: bool | None) -> RawPlace:
    """A place of two or four numbers; any other count has no coordinates.

    Args:
        mark: the numbers.
        box: which shape was asked for; None = both are expected.
    """
    count = len(mark.numbers or ())
    if count not in (2, 4):
        doubled = {"ambiguous_decimal"} if count == 8 else frozenset()
        return RawPlace(None, None, flags=mark.flags | doubled)
    is_box = count == 4
    flags = mark.flags | ({"shape_mismatch"} if box not in (None, is_box) else frozenset())
    if is_box:
        return RawPlace(None, mark.numbers, flags=flags)
    return RawPlace(mark.numbers, None, flags=flags)


def _one_place(text: str, strict: re.Pattern[str], *, box: bool | None, cut: bool) -> Reading:
    body = split_reasoning(text)
    if not body.text:
        return nothing_said(body.flags, cut=cut, thinking=body.thinking)
    return one_place(body.text, strict, body.flags, box=box, cut=cut)


def one_place(
    text: str, strict: re.Pattern[str], flags: frozenset[str], *, box: bool | None, cut: bool
) -> Reading:
    """The one place of an answer without reasoning; two different ones are no answer.

    Args:
        text: the answer, not empty.
        strict: the skeleton the format prescribes; around any other there is `text_around`.
        flags: what was noticed before.
        box: which shape was asked for; None = both are expected.
        cut: whether the token limit ended the answer.
    """
    marks = find_marks(text)
    if not marks.found:
        return _no_marks(marks, flags, cut=cut)
    if cut and marks.open_end:
        return unreadable(flags | {"unclosed"}, cut=True)
    found = _corners_in_tags(marks, text)
    if len({mark.numbers for mark in found}) > 1 or (len(found) > 1 and found[0].numbers is None):
        return unreadable(flags | {"several_answers"}, cut=False)
    flags |= {"repeated_answer"} if len(found) > 1 else frozenset()
    if strict.fullmatch(marks.skeleton) is None:
        flags |= {"text_around"}
    return Reading((_place(found[0], box=box),), None, flags)


def _corners_in_tags(marks: Marks, text: str) -> tuple[Mark, ...]:
    """Two joined pairs inside one `<|box_start|>` or `[[..],[..]]` are corners, not two answers."""
    if len(marks.found) != 2 or _lengths(*marks.found) != (2, 2):
        return marks.found
    first, second = marks.found
    before, after = text[: first.start].rstrip(), text[second.end :].lstrip()
    inside = (before.endswith("[") and after.startswith("]")) or (
        before.endswith(("<|box_start|>", "<box>")) and after.startswith(("<|box_end|>", "</box>"))
    )
    if not (second.joined and inside):
        return marks.found
    corners = (*(first.numbers or ()), *(second.numbers or ()))
    return (Mark(corners, first.start, second.end, flags=first.flags | second.flags),)


def _no_marks(marks: Marks, flags: frozenset[str], *, cut: bool) -> Reading:
    flags |= {"unclosed"} if cut and marks.open_end else {"no_coordinates"}
    return unreadable(flags, cut=cut)


def read_tagged_instead(text: str, flags: frozenset[str], *, cut: bool) -> Reading | None:
    """Another family's tags where JSON was asked for: unmistakable, so read, and flagged."""
    if _TAGGED.search(text) is None:
        return None
    return one_place(text, _POINT, flags | {"other_form"}, box=True, cut=cut)


TEXT_READERS: dict[str, AnswerReader] = {
    "click_text": read_click_text,
    "point_text": read_point_text,
    "point_or_refusal": read_point_or_refusal,
    "tagged": read_tagged,
    "ref_boxes": read_ref_boxes,
}
"""Answer format -> reader."""
