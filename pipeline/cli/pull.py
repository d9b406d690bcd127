"""`pantalla pull`: what reviewers did, into the dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import Overrides, S3Endpoint
from pipeline.cli.server_options import (
    ConfigOption,
    DatasetOrJob,
    Project,
    TokenEnv,
    Url,
    job_of,
    open_named,
    studio_settings,
)

if TYPE_CHECKING:
    from pipeline.pull import PullReport


def pull(
    dataset: DatasetOrJob = None,
    config: ConfigOption = None,
    url: Url = None,
    project: Project = None,
    token_env: TokenEnv = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Read everything again; notices tasks that were deleted."),
    ] = False,
    s3_endpoint: S3Endpoint = None,
    set_: Overrides = None,
) -> None:
    """Bring reviews from Label Studio into the dataset's `reviews`; again adds only what changed.

    An edit is a new row, a deletion a row that says so; nothing is overwritten.
    """
    from pipeline.pull import pull_dataset

    job = job_of(config, set_)
    opened = open_named(dataset, job, s3_endpoint)
    report = pull_dataset(opened, studio_settings(job, url, project, token_env), full=full)
    for line in pull_lines(report):
        typer.echo(line)


def pull_lines(report: PullReport) -> list[str]:
    """What a pull did, for a person."""
    counts = {
        "New reviews": report.new,
        "Edited": report.edited,
        "Deleted": report.deleted,
        "Known already": report.known,
        "Not of this dataset": report.strangers,
    }
    lines = [f"{name:<21}{count}" for name, count in counts.items()]
    if report.new or report.edited:
        verdicts = {**report.verdicts, "skipped": report.skipped}
        told = ", ".join(f"{name} {n}" for name, n in sorted(verdicts.items()) if n)
        lines.append(f"{'Of new and edited':<21}{told}")
    if report.flags:
        told = ", ".join(f"{name} {n}" for name, n in sorted(report.flags.items()))
        lines.append(f"{'Flags':<21}{told}")
    if report.blocked:
        lines.append(f"{'Need another look':<21}{report.blocked} (`pantalla gold` lists them)")
    if report.foreign_regions:
        told = f"{report.foreign_regions} (not of this interface; kept in `result`)"
        lines.append(f"{'Foreign regions':<21}{told}")
    return lines
