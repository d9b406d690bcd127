"""`pantalla review status` and `pantalla review retire`: the queue of the reviewers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    from label_studio.client import StudioClient
    from pipeline.config import LabelStudioConfig
    from pipeline.review_status import ReviewStatus


def status(
    dataset: DatasetOrJob = None,
    config: ConfigOption = None,
    url: Url = None,
    project: Project = None,
    token_env: TokenEnv = None,
    s3_endpoint: S3Endpoint = None,
    set_: Overrides = None,
) -> None:
    """Say what waits, what was done today, how long a task takes, and when the queue is empty."""
    from datetime import datetime

    from pipeline.review_status import review_status

    job = job_of(config, set_)
    opened = open_named(dataset, job, s3_endpoint)
    with _project(studio_settings(job, url, project, token_env)) as (client, project_id):
        now = datetime.now().astimezone()
        for line in status_lines(review_status(opened, client, project_id, now)):
            typer.echo(line)


def retire(
    dataset: DatasetOrJob = None,
    config: ConfigOption = None,
    url: Url = None,
    project: Project = None,
    token_env: TokenEnv = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without it, only say what would be done.")
    ] = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere",
            help="Also tasks of screens that this dataset does not hold; not where another "
            "dataset shares the project.",
        ),
    ] = False,
    s3_endpoint: S3Endpoint = None,
    set_: Overrides = None,
) -> None:
    """Take tasks out of the queue whose sample is superseded or no longer for review.

    Tasks that anyone answered, skipped or began stay.
    """
    from pipeline.review_queue import plan_retire
    from pipeline.review_queue import retire as take_out

    job = job_of(config, set_)
    opened = open_named(dataset, job, s3_endpoint)
    with _project(studio_settings(job, url, project, token_env)) as (client, project_id):
        plan = plan_retire(opened, client, project_id, elsewhere=elsewhere)
        _tell("Superseded, untouched", len(plan.tasks))
        _tell("Superseded, touched", f"{plan.touched} (they stay)")
        _tell("Of other screens", f"{plan.elsewhere} (they stay; see --elsewhere)")
        if yes:
            _tell("Taken out", take_out(client, project_id, plan))
        elif plan.tasks:
            typer.echo("Nothing was changed: --yes takes the untouched ones out.")


def status_lines(found: ReviewStatus) -> list[str]:
    """The state of the queue, for a person."""
    begun = f"{found.waiting} ({found.begun} begun, {found.skipped} skipped)"
    lines = [
        _line("To review", found.to_review),
        _line("  waiting", begun),
        _line("  finished", found.finished),
        _line("  not on the server", found.not_pushed),
        _line("Superseded tasks", found.superseded),
        _line("Done today", found.today),
    ]
    if found.minutes is not None and found.hours_left is not None:
        lines.append(_line("Minutes per task", f"{found.minutes:.1f} (median of the last 7 days)"))
        lines.append(_line("Work left", f"{found.hours_left:.1f} hours of one reviewer"))
    if found.ends is None:
        lines.append(_line("Estimated end", "no task was finished in the last 7 days"))
    else:
        pace = f"{found.ends.isoformat()}, at {found.per_day:.1f} tasks on a day with work"
        lines.append(_line("Estimated end", pace))
    return lines


@contextmanager
def _project(studio: LabelStudioConfig) -> Iterator[tuple[StudioClient, int]]:
    """A client and the id of the project; both are there already or this is an error."""
    from label_studio.client import ServerSettings, connect
    from label_studio.pull import find_project
    from schemas.errors import ConfigError

    if studio.url is None:
        raise ConfigError("label_studio.url is not set: where is the Label Studio server?")
    client = connect(ServerSettings(studio.url, studio.project, studio.token_env))
    try:
        yield client, find_project(client, studio.project)
    finally:
        client.close()


def _tell(name: str, value: object) -> None:
    typer.echo(_line(name, value))


def _line(name: str, value: object) -> str:
    return f"{name:<23}{value}"
