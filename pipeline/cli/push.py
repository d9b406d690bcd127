"""`pantalla push`: review rows of a dataset to Label Studio."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import InputEndpoint, Overrides, S3Endpoint

if TYPE_CHECKING:
    from pipeline.config import JobConfig, LabelStudioConfig
    from pipeline.dataset import Dataset
    from pipeline.report.stats import PushOutcome


def push(
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATASET]",
            help="A dataset: a folder or s3://...; default: that of --config.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="The job file, for its settings.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Address of the Label Studio server.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Title of the project, found or made.")
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option("--token-env", help="Environment variable that holds the API token."),
    ] = None,
    s3_endpoint: S3Endpoint = None,
    input_s3_endpoint: InputEndpoint = None,
    set_: Overrides = None,
) -> None:
    """Send the samples that need people to Label Studio; what is there already stays as it is.

    Exit code 1 means that some are not there yet: the same command tries again.
    """
    from pipeline.config import load_config
    from pipeline.push import push_dataset
    from pipeline.push_progress import PushProgress

    job = load_config(config, tuple(set_ or ())) if config else None
    opened = _open(dataset, job, s3_endpoint, input_s3_endpoint)
    outcome = push_dataset(opened, _studio(job, url, project, token_env), PushProgress())
    _tell(outcome)
    raise typer.Exit(1 if outcome.pending else 0)


def _open(
    dataset: str | None, job: JobConfig | None, endpoint: str | None, input_endpoint: str | None
) -> Dataset:
    """The dataset that is named, or the job's; options win over the job file."""
    from pipeline.dataset import open_dataset

    if job is None:
        if dataset is None:
            raise typer.BadParameter("name a dataset, or a job file with --config")
        return open_dataset(dataset, endpoint, input_endpoint)
    return open_dataset(
        dataset or job.output.dataset,
        endpoint or job.output.s3_endpoint,
        input_endpoint or job.input.s3,
    )


def _studio(
    job: JobConfig | None, url: str | None, project: str | None, token_env: str | None
) -> LabelStudioConfig:
    """The job's Label Studio settings, or the defaults, with the options over them."""
    from pydantic import ValidationError

    from pipeline.config import LabelStudioConfig
    from schemas.errors import ConfigError

    base = job.label_studio.model_dump() if job else {}
    given = {"url": url, "project": project, "token_env": token_env}
    settings = {**base, **{name: text for name, text in given.items() if text is not None}}
    try:
        return LabelStudioConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(["label_studio", *map(str, first["loc"])])
        given_text = f" = {first['input']!r}" if first["loc"] else ""
        raise ConfigError(f"{name}{given_text}: {first['msg']}") from None


def _tell(outcome: PushOutcome) -> None:
    typer.echo(f"New tasks          {outcome.tasks_new}")
    typer.echo(f"There already      {outcome.tasks_present}")
    typer.echo(f"Not there yet      {outcome.pending}")
    if outcome.note:
        typer.echo(f"Note               {outcome.note}")
    typer.echo(f"Project            {outcome.project}")
