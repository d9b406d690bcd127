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
    """Run the whole job on three dozen bundled Spanish screens, on the CPU, in a few minutes.

    The model is a tiny one that knows the drawn screens among them and is lost on the real ones;
    everything around it is real.
    """
    from pipeline.demo.story import tell_demo

    raise typer.Exit(tell_demo(dir_))
