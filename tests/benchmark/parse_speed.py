"""How fast answers are read, beside json_repair: `python -m tests.benchmark.parse_speed`.

json_repair only makes Python values of a text; it does not decide what an answer says, check a
number or convert a coordinate. It is here for scale: parsers that need no more time than a repair
are no bottleneck. Figures are printed, nothing is asserted.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from json_repair import repair_json

from schemas.geometry import FrameKind, SeenImage, Size
from transforms.parse import parse_answer

SEEN = SeenImage.unchanged(Size(1920, 1080))
BOX = '{"bbox_2d": [100, 200, 300, 260], "label": "Guardar"}'
DENSE = ", ".join(
    f'{{"bbox_2d": [{i % 900}, {i % 700}, {i % 900 + 50}, {i % 700 + 20}], "label": "fila {i}"}}'
    for i in range(200)
)
CALL = '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [512, 300]}}'
CASES = (
    ("click", "click_xy", '{"x": 512, "y": 300}'),
    ("click, trailing comma", "click_xy", '{"x": 512, "y": 300,}'),
    ("click after thought", "click_xy", '<think>quizá {"x": 1}</think>{"x": 512, "y": 300}'),
    ("box in a fence", "qwen_json", f"```json\n[{BOX}]\n```"),
    ("200 boxes", "qwen_json", f"[{DENSE}]"),
    ("200 boxes, cut", "qwen_json", f"[{DENSE}, {{"),
    ("tool call", "tool_call", f"<tool_call>\n{CALL}\n</tool_call>"),
    ("point as text", "point_text", "(512, 300)"),
    ("action", "ui_tars", "Thought: sí\nAction: click(start_box='(512,300)')"),
    ("named box", "ref_boxes", "<ref>Guardar</ref><box>[[100, 200, 300, 260]]</box>"),
    ("250 kB of brackets", "qwen_json", "[" * 250_000),
    ("250 kB of prose", "point_text", "el botón (uno " * 17_800),
)
MIN_SECONDS = 0.2
LONG = 100_000


def rate(call: Callable[[], object]) -> float:
    """Calls per second of processor time, over at least `MIN_SECONDS`."""
    began, calls = time.process_time(), 0
    while (took := time.process_time() - began) < MIN_SECONDS:
        call()
        calls += 1
    return calls / took


def ours(name: str, text: str) -> Callable[[], object]:
    """One reading of `text` by our parser."""
    return lambda: parse_answer(text, "length", name, FrameKind.NORM_1000, SEEN)


def main() -> None:
    """Print answers per second, ours and json_repair's."""
    print(f"{'answer':24} {'bytes':>8} {'pantalla/s':>12} {'json_repair/s':>14}")
    for title, name, text in CASES:
        # json_repair needs minutes for the long ones.
        other = "" if len(text) > LONG else f"{rate(lambda text=text: repair_json(text)):,.0f}"
        print(f"{title:24} {len(text):>8,} {rate(ours(name, text)):>12,.1f} {other:>14}")


if __name__ == "__main__":
    main()
