"""`pantalla demo`: the whole job on bundled screens, explained while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    dir_: Annotated[Path, typer.Option("--dir", help="Folder of the demo's dataset.")] = Path(
        "pantalla-demo"
    ),
) -> None:
    """Run the whole job on a dozen bundled Spanish screens, on the CPU, in a few minutes.

    The model is a tiny one with random weights that is made on the spot: its answers are noise,
    and everything around it is real.
    """
    from pipeline.demo.story import tell_demo

    raise typer.Exit(tell_demo(dir_))
