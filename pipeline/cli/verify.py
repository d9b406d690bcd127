"""`pantalla verify`: is a dataset whole?"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, DatasetUri, InputEndpoint, S3Endpoint

if TYPE_CHECKING:
    from pipeline.verify import Verdict

_SHOWN = 20


def verify(
    dataset: DatasetUri,
    shards: Annotated[
        bool,
        typer.Option("--shards", help="Also read every screenshot again and compare its hash."),
    ] = False,
    as_json: AsJson = False,
    s3_endpoint: S3Endpoint = None,
    input_s3_endpoint: InputEndpoint = None,
) -> None:
    """Check a dataset against itself: records, hashes, schema, counts, ids, geometry. Offline.

    Exit code 1 means that something is not as it must be; every finding names its place.
    """
    from pipeline.dataset import open_dataset
    from pipeline.verify import verify_dataset

    verdict = verify_dataset(open_dataset(dataset, s3_endpoint, input_s3_endpoint), shards=shards)
    if as_json:
        found = {**asdict(verdict), "whole": verdict.whole}
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _tell(verdict, shards=shards)
    raise typer.Exit(0 if verdict.whole else 1)


def _tell(verdict: Verdict, *, shards: bool) -> None:
    typer.echo(f"Dataset    {verdict.dataset}")
    typer.echo(
        f"Units      {verdict.units:,} committed, {verdict.parts:,} parts, "
        f"{verdict.part_bytes:,} bytes"
    )
    rows = ", ".join(f"{count:,} {table}" for table, count in sorted(verdict.rows.items()))
    typer.echo(f"Rows       {rows or 'none'}")
    if shards:
        typer.echo(f"Shards     {verdict.screens_read:,} screenshots read again")
    if verdict.waiting:
        typer.echo(
            f"Waiting    {verdict.waiting:,} units that a run planned are not committed: "
            "`pantalla run` does them"
        )
    if verdict.leftovers:
        typer.echo(
            f"Leftovers  {verdict.leftovers:,} parts that no record names, which nobody reads: "
            "`pantalla clean` removes them"
        )
    for finding in verdict.findings[:_SHOWN]:
        typer.echo(f"  {finding.check:9}{finding.where}: {finding.detail}")
    if verdict.problems > _SHOWN:
        typer.echo(f"  ... and {verdict.problems - _SHOWN:,} more; --json tells the first 1,000")
    problems = f"{verdict.problems:,} problem{'s' if verdict.problems != 1 else ''}"
    typer.echo(f"Verdict    {'whole' if verdict.whole else problems}")
