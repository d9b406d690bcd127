"""`pantalla show`: one sample, everything that is known of it, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from pipeline.cli.options import DatasetUri, InputEndpoint, RequesterPays, S3Endpoint

if TYPE_CHECKING:
    from pipeline.dataset import Dataset

_Sample: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        help="Its id, or a unique beginning of it. Without it: a list.", show_default=False
    ),
]
_Png: TypeAlias = Annotated[
    Path | None,
    typer.Option("--png", help="Where the picture goes; default: <beginning of the id>.png here."),
]


def show(
    dataset: DatasetUri,
    sample: _Sample = None,
    png: _Png = None,
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
    requester_pays: RequesterPays = False,
) -> None:
    """Show a sample: prompt, raw answers, geometry, status and route, and a PNG with it drawn."""
    from pipeline.dataset import open_dataset
    from pipeline.sample_text import print_list
    from transforms.storage import S3Access

    shards = S3Access(input_s3_endpoint or s3_endpoint, requester_pays)
    opened = open_dataset(dataset, s3_endpoint, shards)
    if sample is None:
        print_list(opened, limit, route)
        return
    _show_one(opened, sample, png, picture=picture, truth=truth)


def _show_one(
    dataset: Dataset, sample: str, png: Path | None, *, picture: bool, truth: bool
) -> None:
    from pipeline.sample_picture import draw_sample
    from pipeline.sample_text import print_sample
    from schemas.errors import ConfigError

    found = dataset.sample(sample)
    screen = dataset.screen(found.screen_id)
    print_sample(found, screen)
    if picture:
        target = png or Path(f"{found.sample_id[:12]}.png")
        drawn = draw_sample(dataset.picture(screen), found, truth=truth)
        try:
            drawn.save(target, "PNG")
        except OSError as error:
            raise ConfigError(f"{target}: the picture cannot be written: {error}") from error
        typer.echo(f"Picture    {target}")
