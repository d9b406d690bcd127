"""Options of the verbs that talk to Label Studio: they win over the job file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from pipeline.config import JobConfig, LabelStudioConfig
    from pipeline.dataset import Dataset

DatasetOrJob: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATASET]",
        help="A dataset: a folder or s3://...; default: that of --config.",
        show_default=False,
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", "-c", help="The job file, for its settings.")
]
Url: TypeAlias = Annotated[
    str | None, typer.Option("--url", help="Address of the Label Studio server.")
]
Project: TypeAlias = Annotated[
    str | None, typer.Option("--project", help="Title of the project on the server.")
]
TokenEnv: TypeAlias = Annotated[
    str | None, typer.Option("--token-env", help="Environment variable that holds the API token.")
]


def job_of(config: Path | None, overrides: list[str] | None) -> JobConfig | None:
    """The job file with its overrides, or None where none is named.

    Raises:
        ConfigError: if it is not a valid job.
    """
    from pipeline.config import load_config

    return load_config(config, tuple(overrides or ())) if config else None


def open_named(
    dataset: str | None,
    job: JobConfig | None,
    endpoint: str | None,
    input_endpoint: str | None = None,
) -> Dataset:
    """The dataset that is named, or the job's; options win over the job file.

    Raises:
        DatasetError: if there is none.
    """
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


def studio_settings(
    job: JobConfig | None, url: str | None, project: str | None, token_env: str | None
) -> LabelStudioConfig:
    """The job's Label Studio settings, or the defaults, with the options over them.

    Raises:
        ConfigError: naming the setting that is not valid.
    """
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
