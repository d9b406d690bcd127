"""UI-TARS: `Thought: .. Action: click(start_box='(x,y)')`, and its short form `(x,y)`."""

from __future__ import annotations

import re
from dataclasses import replace

from transforms.parse.marks import HOLE
from transforms.parse.reading import Reading, nothing_said, unreadable
from transforms.parse.text import split_reasoning
from transforms.parse.text_formats import one_place

_SECTION = re.compile(r"(?:\A|\n)\s*+(Thought|Reflection|Action_Summary|Action)\s*+:")
_CALL = re.compile(r"\s*+([A-Za-z_]++)\s*+\(")
_CLICKS = frozenset({"click", "left_single", "left_click"})
_BOX_MARK = r"(?:<\|box_start\|>)?"
_STRICT = re.compile(
    rf"\s*+(?:[a-z_]++\(\s*+(?:start_box|point|start_point)\s*+=\s*+['\"]?+{_BOX_MARK}{HOLE}"
    rf"(?:<\|box_end\|>)?['\"]?+\s*+\)|{_BOX_MARK}{HOLE}(?:<\|box_end\|>)?)\s*+"
)


def read_ui_tars(text: str, cut: bool) -> Reading:
    """The place of the one action of an answer; numbers in `Thought` are reasoning.

    Actions without a place (`finished()`, `call_user()`, `wait()`) and actions that need two
    (`drag`) have no one place; a click with a box gives its centre.
    """
    body = split_reasoning(text)
    if not body.text:
        return nothing_said(body.flags, cut=cut, thinking=body.thinking)
    action, flags = _action_text(body.text, body.flags)
    if not action:
        return unreadable(flags | {"no_action"}, cut=cut)
    called = _CALL.match(action)
    name = called.group(1).lower() if called else None
    if name is not None and name not in _CLICKS:
        flags |= {"other_action"}
    reading = one_place(action, _STRICT, flags, box=False, cut=cut)
    places = tuple(replace(place, action=name) for place in reading.places)
    return replace(reading, places=places)


def _action_text(body: str, flags: frozenset[str]) -> tuple[str, frozenset[str]]:
    """What follows `Action:`, all of it; a text without any heading is an action itself."""
    heads = list(_SECTION.finditer(body))
    if not heads:
        return body, flags
    ends = [head.start() for head in heads[1:]] + [len(body)]
    texts = [body[head.end() : end] for head, end in zip(heads, ends, strict=True)]
    sections = [(head.group(1), text) for head, text in zip(heads, texts, strict=True)]
    actions = [text for name, text in sections if name == "Action"]
    if body[: heads[0].start()].strip() or len(actions) < len(sections):
        flags |= {"reasoning"}
    return "\n".join(actions).strip(), flags
