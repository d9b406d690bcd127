"""Where results are printed: a terminal as it is, a file or a pipe wide and without padding."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

FILE_WIDTH = 140
"""Columns of what is written to a file or a pipe, where no window says."""


def output() -> Console:
    """The console of standard output."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=FILE_WIDTH)


def show(renderable: RenderableType, console: Console) -> None:
    """Print a table; away from a terminal without the spaces that pad its lines."""
    if console.is_terminal:
        console.print(renderable)
        return
    sink = io.StringIO()
    Console(file=sink, width=console.width, no_color=True, highlight=False).print(renderable)
    for line in sink.getvalue().splitlines():
        console.print(line.rstrip(), markup=False, soft_wrap=True)
