"""The answer formats: one function each, from a JSON value to elements in the model's frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from transforms.parse.documents import JsonValue
from transforms.parse.places import RawPlace, clean_label, read_number, read_numbers

FormatReader: TypeAlias = "Callable[[JsonValue], list[RawPlace] | None]"
"""Elements of a value; an empty list where the format says "absent" so; None = another form."""


def read_click_xy(value: JsonValue) -> list[RawPlace] | None:
    """`{"x": .., "y": ..}`: one click point (Holo family). It has no way to say "absent"."""
    if not isinstance(value, dict):
        return None
    x, noticed_x = read_number(value.get("x"))
    y, noticed_y = read_number(value.get("y"))
    flags = noticed_x | noticed_y | ({"extra_keys"} if set(value) - {"x", "y"} else frozenset())
    point = None if x is None or y is None else (x, y)
    return [RawPlace(point, None, None, flags)]


def read_qwen_json(value: JsonValue) -> list[RawPlace] | None:
    """A list of, or one, `{"bbox_2d": [..4], "point_2d": [..2], "label": ..}` (Qwen-VL family).

    `[]` says that nothing on the screen fits.
    """
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return None
    if not entries:
        return []
    objects = [entry for entry in entries if isinstance(entry, dict)]
    if not objects:
        return None
    return [_qwen_element(entry) for entry in entries]


def _qwen_element(entry: JsonValue) -> RawPlace:
    if not isinstance(entry, dict):
        return RawPlace(None, None)
    box, box_flags = read_numbers(entry.get("bbox_2d"), 4)
    point, point_flags = read_numbers(entry.get("point_2d"), 2)
    label, label_flags = clean_label(entry.get("label"))
    flags = box_flags | point_flags | label_flags
    if box is None and point is None:
        # The other shape under the wrong key is read as what it is, never stretched into a box.
        point, more = read_numbers(entry.get("bbox_2d"), 2)
        box, most = read_numbers(entry.get("point_2d"), 4)
        flags |= more | most | ({"shape_mismatch"} if point or box else frozenset())
    return RawPlace(point, box, label, flags)


READERS: dict[str, FormatReader] = {"click_xy": read_click_xy, "qwen_json": read_qwen_json}
"""Answer format -> reader; a test compares the names with `schemas.profile.AnswerFormat`."""
