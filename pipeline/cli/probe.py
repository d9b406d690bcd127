"""`pantalla probe`: in which frame does a model give coordinates?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from pipeline.cli.options import AsJson
from schemas.geometry import FrameKind

CANNOT_TELL, CONTRADICTED = 1, 2

Model: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "--checkpoint", help="Model id or folder of the checkpoint."),
]
Profile: TypeAlias = Annotated[
    str | None,
    typer.Option(help="How it is asked: a profile. Default: the one that lists the model."),
]
Frame: TypeAlias = Annotated[
    str | None, typer.Option(help="Compare with this frame instead of the profile's.")
]
Write: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a profile with the settled frame to this file."),
]
EngineSettings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="MODEL.ENGINE.KEY=VALUE",
        help="An engine argument, as in a job; repeatable.",
        show_default=False,
    ),
]


def probe(
    model: Model = None,
    profile: Profile = None,
    frame: Frame = None,
    write: Write = None,
    seed: Annotated[int, typer.Option(help="Of the drawn screens.")] = 0,
    set_: EngineSettings = None,
    *,
    json: AsJson = False,
) -> None:
    """Draw Spanish screens with known buttons, ask the model where they are, compare conventions.

    Ends with 0 when one convention is settled and the profile agrees or says nothing, or when a
    profile is written; with 1 when it cannot tell, with 2 when the profile is contradicted.
    """
    from pipeline.probe import probe_model, probed_config
    from pipeline.probe_profile import write_profile
    from pipeline.probe_text import report_json, report_lines

    config = probed_config(profile, model, _frame(frame), tuple(set_ or ()))
    report = probe_model(config, seed, status=lambda text: typer.echo(f"{text} ...", err=True))
    typer.echo(report_json(report) if json else "\n".join(report_lines(report)))
    if write is not None:
        written = write_profile(report, config.profile, write)
        typer.echo(f"Written  {write}: profile {written.name!r}, frame {written.frame}", err=json)
        return
    if report.contradicted:
        raise typer.Exit(CONTRADICTED)
    if report.verdict.finding == "cannot_tell":
        raise typer.Exit(CANNOT_TELL)


def _frame(text: str | None) -> FrameKind | None:
    from schemas.errors import ConfigError

    if text is None:
        return None
    if text not in tuple(FrameKind):
        raise ConfigError(f"--frame {text}: no such frame; choose one of {', '.join(FrameKind)}")
    return FrameKind(text)
