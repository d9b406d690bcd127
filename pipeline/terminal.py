"""Where results are printed: a terminal as it is, a file or a pipe wide and without padding."""

from __future__ import annotations

import io
import re

from rich.console import Console, RenderableType

FILE_WIDTH = 180
"""Columns of what is written to a file or a pipe, where no window says."""


_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 but the line feed, DEL, C1 and the bidirectional overrides and isolates."""


def output() -> Console:
    """The console of standard output."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=FILE_WIDTH)


def visible(text: str, limit: int | None = None) -> str:
    """`text` as a terminal may safely be given it: what would steer it is shown instead.

    Instructions, names and answers come from outside; an escape sequence in one could rewrite what
    the person has read. Control characters are drawn by the Unicode pictures for them, and marks
    that turn the direction of writing by U+FFFD; line feeds stay.

    Args:
        text: any text.
        limit: longest result in characters, cut with an ellipsis; None = no limit.
    """
    shown = _STEERING.sub(_picture, text)
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def show(renderable: RenderableType, console: Console) -> None:
    """Print a table; away from a terminal without the spaces that pad its lines."""
    if console.is_terminal:
        console.print(renderable)
        return
    sink = io.StringIO()
    Console(file=sink, width=console.width, no_color=True, highlight=False).print(renderable)
    for line in sink.getvalue().splitlines():
        console.print(line.rstrip(), markup=False, soft_wrap=True)
