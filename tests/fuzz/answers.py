"""Random answers with the structure of real ones: published forms, cut, mixed and damaged."""

from __future__ import annotations

import random
from collections.abc import Callable

CALL = '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [%s, %s]}}'
FORMS = (
    '{"x": %s, "y": %s}',
    '{"action": "click_absolute", "x": %s, "y": %s}',
    "Click(%s, %s)",
    "(%s, %s)",
    "[%s,%s]",
    "(%s,%s),(%s,%s)",
    "[[%s, %s, %s, %s]]",
    "<point>%s %s</point>",
    "<box>%s %s %s %s</box>",
    "<ref>Guardar</ref><box>[[%s, %s, %s, %s]]</box>",
    "<|object_ref_start|>año<|object_ref_end|><|box_start|>(%s,%s),(%s,%s)<|box_end|><|im_end|>",
    "Thought: quizá (1,2)\nAction: click(start_box='<|box_start|>(%s,%s)<|box_end|>')",
    "Action: click(point='<point>%s %s</point>')",
    '[{"bbox_2d": [%s, %s, %s, %s], "label": "botón"}]',
    '```json\n[{"point_2d": [%s, %s], "label": "a, ] b"}]\n```',
    CALL,
    f"<tool_call>\n{CALL}\n</tool_call>",
)
NUMBERS = (
    "0", "-1", "1000", "1001", "1020", "999.5", "0,53", "1.234,5", "1e400", "-1e400", "NaN",
    "Infinity", "null", "true", '"12"', "=", "", "9" * 400, "0.0000001", "1e-400", "x=5", "٣", "-",
)  # fmt: skip
SCRAPS = (
    "{", "}", "[", "]", "(", ")", '"', "'", "\\", ",", ";", ":", " ", "\n", "\t", "\x00", "\ufeff",
    "\ud83d", "\u2028", "ñ", "<think>", "</think>", "```", "```json", "<box>", "</box>", "<point>",
    "</point>", "<|box_start|>", "<|box_end|>", "<ref>", "</ref>", "Action:", "\nThought:",
    "click(", "<tool_call>", "</tool_call>", "<|im_end|>", "</s>", "NaN", "[]", "{}", "[-1,-1]",
    '"bbox_2d":', '"x":', "none", "x=", "1", "12", " " * 70, "[" * 20, ",,", '{"arguments":{}}',
)  # fmt: skip


def number(chance: random.Random) -> str:
    """A coordinate: mostly one that could be right."""
    pick = chance.random()
    if pick < 0.6:
        return str(chance.randint(0, 1000))
    if pick < 0.75:
        return f"{chance.uniform(-50, 1100):.{chance.randint(0, 6)}f}"
    if pick < 0.85:
        return str(chance.randint(-(10**9), 10**9))
    return chance.choice(NUMBERS)


def form(chance: random.Random) -> str:
    """One published form, filled."""
    shape = chance.choice(FORMS)
    return shape % tuple(number(chance) for _ in range(shape.count("%s")))


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randint(0, len(text))]


def _insert(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(SCRAPS) + text[at:]


def _delete(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + text[at + chance.randint(1, 6) :]


def _swap(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[at:] + text[:at]


def _repeat(text: str, chance: random.Random) -> str:
    return text * chance.randint(2, 5)


def _second(text: str, chance: random.Random) -> str:
    return text + chance.choice(("", " ", "\n", ",", "</think>")) + form(chance)


def _think(text: str, chance: random.Random) -> str:
    return f"<think>{form(chance)}</think>{text}"


CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _cut, _insert, _insert, _insert, _delete, _delete, _swap, _repeat, _second, _think,
)  # fmt: skip


def answer(chance: random.Random) -> str:
    """A random answer: a tenth plain, a tenth scraps, the rest damaged forms."""
    pick = chance.random()
    if pick < 0.1:
        return form(chance)
    if pick < 0.2:
        return "".join(chance.choices(SCRAPS, k=chance.randint(0, 40)))
    text = form(chance)
    for _ in range(chance.randint(1, 4)):
        text = chance.choice(CHANGES)(text, chance)
    return text
