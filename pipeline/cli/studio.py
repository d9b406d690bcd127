"""`pantalla studio`: a local Label Studio for people who have no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def studio(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", help="Where its database, pictures and account are kept.")
    ] = Path("pantalla-studio"),
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Port on 127.0.0.1; it must be free.")
    ] = 8080,
) -> None:
    """Run Label Studio on this machine only, until Ctrl-C; print where and how to log in.

    It lives in an environment of its own, made on the first start, and calls nothing outside.
    """
    from label_studio.server import run_studio

    raise typer.Exit(run_studio(data_dir, port, typer.echo))
