"""The answer formats: what each JSON format says, and the list of all readers."""

from __future__ import annotations

from transforms.parse.documents import JsonValue
from transforms.parse.json_answer import is_call, json_reader
from transforms.parse.places import RawPlace, clean_label, read_number, read_numbers
from transforms.parse.reading import AnswerReader
from transforms.parse.text_formats import TEXT_READERS
from transforms.parse.ui_tars import read_ui_tars

_CLICKS = frozenset({"click", "left_click", "click_absolute", "mouse_move"})


def read_click_xy(value: JsonValue) -> list[RawPlace] | None:
    """`{"x": .., "y": ..}`: one click point (Holo2, Holo3). It has no way to say "absent"."""
    return _click(value, expected=frozenset({"x", "y"}))


def read_click_action(value: JsonValue) -> list[RawPlace] | None:
    """`{"action": "click_absolute", "x": .., "y": ..}` (Holo1, Holo1.5)."""
    places = _click(value, expected=frozenset({"x", "y", "action"}))
    if places is None or not isinstance(value, dict):
        return None
    place = places[0]
    action, flags = _action(value.get("action"))
    return [RawPlace(place.point, None, None, place.flags | flags, action)]


def _click(value: JsonValue, expected: frozenset[str]) -> list[RawPlace] | None:
    if not isinstance(value, dict):
        return None
    x, noticed_x = read_number(value.get("x"))
    y, noticed_y = read_number(value.get("y"))
    flags = noticed_x | noticed_y | ({"extra_keys"} if set(value) - expected else frozenset())
    point = None if x is None or y is None else (x, y)
    return [RawPlace(point, None, None, flags)]


def read_tool_call(value: JsonValue) -> list[RawPlace] | None:
    """`{"name": "computer_use", "arguments": {"action": .., "coordinate": [x, y]}}`, or several.

    Qwen2.5-VL, Qwen3-VL and GroundNext write it between `<tool_call>` tags.
    """
    entries = value if isinstance(value, list) else [value]
    calls = [entry for entry in entries if isinstance(entry, dict)]
    if not calls or len(calls) < len(entries):
        return None
    if not all(is_call(call) or "coordinate" in call for call in calls):
        return None
    return [_call_element(call) for call in calls]


def _call_element(call: dict[str, JsonValue]) -> RawPlace:
    arguments = call.get("arguments")
    flags: frozenset[str] = frozenset()
    if not isinstance(arguments, dict):
        arguments, flags = call, frozenset({"bare_call"})
    action, noticed = _action(arguments.get("action"))
    place = arguments.get("coordinate")
    point, point_flags = read_numbers(place, 2)
    box, box_flags = read_numbers(place, 4)
    flags |= noticed | point_flags | box_flags | ({"shape_mismatch"} if box else frozenset())
    return RawPlace(point, box, None, flags, action)


def _action(value: JsonValue) -> tuple[str | None, frozenset[str]]:
    name, flags = clean_label(value)
    if name is None or name not in _CLICKS:
        flags |= {"other_action"}
    return name, flags


def read_qwen_json(value: JsonValue) -> list[RawPlace] | None:
    """A list of, or one, `{"bbox_2d": [..4], "point_2d": [..2], "label": ..}` (Qwen-VL family).

    `[]` says that nothing on the screen fits. Tool calls, the family's other habit, are read too.
    """
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return None
    if not entries:
        return []
    if not any(isinstance(entry, dict) for entry in entries):
        return None
    return [_qwen_element(entry) for entry in entries]


def _qwen_element(entry: JsonValue) -> RawPlace:
    if not isinstance(entry, dict):
        return RawPlace(None, None)
    if is_call(entry):
        place = _call_element(entry)
        return RawPlace(place.point, place.box, None, place.flags | {"tool_call"}, place.action)
    boxes, other_box = _either(entry, "bbox_2d", "bbox")
    points, other_point = _either(entry, "point_2d", "point")
    box, box_flags = read_numbers(boxes, 4)
    point, point_flags = read_numbers(points, 2)
    label, label_flags = clean_label(entry.get("label"))
    flags = box_flags | point_flags | label_flags | other_box | other_point
    if box is None and point is None:
        # The other shape under the wrong key is read as what it is, never stretched into a box.
        point, more = read_numbers(boxes, 2)
        box, most = read_numbers(points, 4)
        flags |= more | most | ({"shape_mismatch"} if point or box else frozenset())
    return RawPlace(point, box, label, flags)


def _either(entry: dict[str, JsonValue], key: str, other: str) -> tuple[JsonValue, frozenset[str]]:
    if key in entry or other not in entry:
        return entry.get(key), frozenset()
    return entry[other], frozenset({"other_key"})


READERS: dict[str, AnswerReader] = {
    "click_xy": json_reader(read_click_xy),
    "click_action": json_reader(read_click_action),
    "qwen_json": json_reader(read_qwen_json),
    "tool_call": json_reader(read_tool_call),
    "ui_tars": read_ui_tars,
    **TEXT_READERS,
}
"""Answer format -> reader; a test compares the names with `schemas.profile.AnswerFormat`."""
