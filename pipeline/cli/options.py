"""Arguments that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

JobFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The job: a TOML file.", show_default=False)
]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Override one setting of the job; repeatable. Relative paths start here.",
        show_default=False,
    ),
]
DatasetUri: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="DATASET", help="A dataset: a folder or s3://...", show_default=False),
]
S3Endpoint: TypeAlias = Annotated[
    str | None,
    typer.Option("--s3-endpoint", help="Address of the S3 server of the dataset, if not AWS."),
]
InputEndpoint: TypeAlias = Annotated[
    str | None,
    typer.Option("--input-s3-endpoint", help="The same for its shards, if another one."),
]
RequesterPays: TypeAlias = Annotated[
    bool,
    typer.Option("--requester-pays", help="Agree to pay for requests to the bucket of the shards."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
