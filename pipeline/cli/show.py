"""`pantalla show`: one sample, everything that is known of it, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.options import DatasetUri, InputEndpoint, S3Endpoint


def show(
    dataset: DatasetUri,
    sample: Annotated[
        str | None,
        typer.Argument(
            help="Its id, or a unique beginning of it. Without it: a list.", show_default=False
        ),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option(
            "--png", help="Where the picture goes; default: <beginning of the id>.png here."
        ),
    ] = None,
    picture: Annotated[
        bool, typer.Option("--picture/--no-picture", help="Whether to draw it.")
    ] = True,
    truth: Annotated[
        bool, typer.Option("--truth/--no-truth", help="Whether to draw what the sidecar knows.")
    ] = True,
    route: Annotated[
        str | None, typer.Option("--route", help="List only samples of this route.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Samples to list.")] = 10,
    s3_endpoint: S3Endpoint = None,
    input_s3_endpoint: InputEndpoint = None,
) -> None:
    """Show a sample: prompt, raw answers, geometry, status and route, and a PNG with it drawn."""
    from pipeline.dataset import open_dataset
    from pipeline.sample_text import print_list, print_sample

    opened = open_dataset(dataset, s3_endpoint, input_s3_endpoint)
    if sample is None:
        print_list(opened, limit, route)
        return
    found = opened.sample(sample)
    screen = opened.screen(found.screen_id)
    print_sample(found, screen)
    if picture:
        from pipeline.sample_picture import draw_sample

        target = png or Path(f"{found.sample_id[:12]}.png")
        draw_sample(opened.picture(screen), found, truth=truth).save(target, "PNG")
        typer.echo(f"Picture    {target}")
