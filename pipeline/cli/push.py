"""`pantalla push`: review rows of a dataset to Label Studio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from pipeline.cli.options import InputEndpoint, Overrides, S3Endpoint
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
    from pipeline.report.stats import PushOutcome


def push(
    dataset: DatasetOrJob = None,
    config: ConfigOption = None,
    url: Url = None,
    project: Project = None,
    token_env: TokenEnv = None,
    s3_endpoint: S3Endpoint = None,
    input_s3_endpoint: InputEndpoint = None,
    set_: Overrides = None,
) -> None:
    """Send the samples that need people to Label Studio; what is there already stays as it is.

    Exit code 1 means that some are not there yet: the same command tries again.
    """
    from pipeline.push import push_dataset
    from pipeline.push_progress import PushProgress

    job = job_of(config, set_)
    opened = open_named(dataset, job, s3_endpoint, input_s3_endpoint)
    outcome = push_dataset(opened, studio_settings(job, url, project, token_env), PushProgress())
    _tell(outcome)
    raise typer.Exit(1 if outcome.pending else 0)


def _tell(outcome: PushOutcome) -> None:
    typer.echo(f"New tasks          {outcome.tasks_new}")
    typer.echo(f"There already      {outcome.tasks_present}")
    typer.echo(f"Not there yet      {outcome.pending}")
    for index, note in enumerate(filter(None, outcome.note.split("; "))):
        typer.echo(f"{'' if index else 'Note':<19}{note}")
    typer.echo(f"Project            {outcome.project}")
