"""`pantalla studio`: a local Label Studio for people who have no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from label_studio.database import DatabaseKind


def studio(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", help="Where its database, pictures and account are kept.")
    ] = Path("pantalla-studio"),
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Port on 127.0.0.1; it must be free.")
    ] = 8080,
    database: Annotated[
        DatabaseKind,
        typer.Option("--database", help="For a new data folder; auto: PostgreSQL if installed."),
    ] = DatabaseKind.AUTO,
) -> None:
    """Run Label Studio on this machine only, until Ctrl-C; print where and how to log in.

    It lives in an environment of its own, made on the first start, and calls nothing outside.
    """
    from label_studio.server import run_studio

    raise typer.Exit(run_studio(data_dir, port, typer.echo, database))
