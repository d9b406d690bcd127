"""`pantalla review`: what the people who look after the reviewers need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from label_studio.words import Variant
from pipeline.cli.review_queue import retire, status

review_app = typer.Typer(
    help="Look after the reviews: their queue and their guide.",
    no_args_is_help=True,
)
review_app.command(short_help="Say what waits, what was done, when it may end.")(status)
review_app.command(short_help="Take out of the queue what is superseded.")(retire)


@review_app.command(short_help="Write the reviewers' guide as one HTML page.")
def guide(
    variant: Annotated[
        Variant, typer.Option("--variant", help="Whose Spanish it speaks.")
    ] = Variant.NEUTRAL,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; default: the terminal.")
    ] = None,
) -> None:
    """Write the guide that reviewers read in Label Studio, with its pictures, as one HTML page."""
    from label_studio.guide import guide_page

    page = guide_page(variant)
    if out is None:
        typer.echo(page)
        return
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{out} cannot be written: {error.strerror}") from error
    typer.echo(f"Written: {out}")
