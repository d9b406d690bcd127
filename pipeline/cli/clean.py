"""`pantalla clean`: what killed runs left behind."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import DatasetUri, S3Endpoint

if TYPE_CHECKING:
    from pipeline.clean import Leftover

_WORDS = {
    "part": "Parts that no record names",
    "unfinished": "Unfinished writes",
    "worker": "Marks of dead processes",
}


def clean(
    dataset: DatasetUri,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    s3_endpoint: S3Endpoint = None,
) -> None:
    """Remove what killed runs left in a dataset. What a commit record names always stays.

    Nobody reads leftovers: this only frees space. It is refused while a job is at work on the
    dataset, and a job is refused while this is.
    """
    from pipeline.clean import clean as remove
    from pipeline.clean import leftovers
    from pipeline.dataset import open_dataset

    opened = open_dataset(dataset, s3_endpoint)
    found: list[Leftover] = []
    if dry_run:
        found += leftovers(opened)
    else:
        remove(opened, found.append)
    _tell(found, "would be removed" if dry_run else "removed")


def _tell(found: list[Leftover], done: str) -> None:
    for leftover in found[:50]:
        typer.echo(leftover.stat.uri)
    if len(found) > 50:
        typer.echo(f"... and {len(found) - 50:,} more")
    counts = Counter(leftover.what for leftover in found)
    for what, words in _WORDS.items():
        typer.echo(f"{words:28}{counts[what]:>8,}")
    size = sum(leftover.stat.size for leftover in found)
    typer.echo(f"{len(found):,} files of {size:,} bytes {done}")
