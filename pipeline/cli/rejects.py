"""`pantalla rejects`: what could not be used, why, and a look at it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from pipeline.cli.options import AsJson, DatasetUri, InputEndpoint, RequesterPays, S3Endpoint

if TYPE_CHECKING:
    from transforms.storage import S3Address

_TakeOut: TypeAlias = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--take-out",
        metavar="SHARD MEMBER",
        help="Write this member's bytes, and its sidecar's, to files; nothing is overwritten.",
        show_default=False,
    ),
]


def rejects(
    dataset: DatasetUri,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only these, each one listed.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rejects to list.")] = 20,
    take_out: _TakeOut = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="Where --take-out writes.")
    ] = Path(),
    s3_endpoint: S3Endpoint = None,
    input_s3_endpoint: InputEndpoint = None,
    requester_pays: RequesterPays = False,
    *,
    json: AsJson = False,
) -> None:
    """Show what was rejected by stage and reason, with an example each and how to take it out."""
    from transforms.storage import S3Access

    endpoint = input_s3_endpoint or s3_endpoint
    if take_out is not None:
        _take(*take_out, to, S3Access(endpoint, requester_pays))
        return
    options = [] if endpoint is None else ["--input-s3-endpoint", endpoint]
    options += ["--requester-pays"] if requester_pays else []
    _show(dataset, reason, limit, s3_endpoint, options, json=json)


def _take(shard: str, member: str, to: Path, s3: S3Address) -> None:
    from pipeline.take_out import take_out

    for file in take_out(shard, member, to, s3):
        typer.echo(f"{file.sha256}  {file.path}")
        if file.damage:
            typer.echo(f"{file.path}: {file.damage}", err=True)


def _show(
    dataset: str,
    reason: str | None,
    limit: int,
    s3_endpoint: str | None,
    options: list[str],
    *,
    json: bool,
) -> None:
    from itertools import islice

    from pipeline.dataset import open_dataset
    from pipeline.rejects import group_rejects, reject_rows
    from pipeline.rejects_text import print_groups, print_rows, rejects_json

    opened = open_dataset(dataset, s3_endpoint)
    groups = group_rejects(reject_rows(opened, reason))
    rows = list(islice(reject_rows(opened, reason), limit)) if reason else []
    if json:
        typer.echo(rejects_json(dataset, groups, rows, options))
        return
    print_groups(dataset, groups, options)
    if rows:
        print_rows(rows, limit, sum(group.count for group in groups))
