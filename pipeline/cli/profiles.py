"""`pantalla profiles`: the models this version knows, with the source of every fact."""

from __future__ import annotations

from typing import Annotated

import typer

profiles_app = typer.Typer(
    help="List the bundled model profiles, or show one with its sources.",
    rich_markup_mode=None,
    invoke_without_command=True,
)


@profiles_app.callback()
def _default(context: typer.Context) -> None:
    """List the bundled model profiles, or show one with its sources."""
    if context.invoked_subcommand is None:
        list_all()


@profiles_app.command("list")
def list_all() -> None:
    """List the bundled model profiles."""
    from rich.table import Table

    from pipeline.terminal import output, show
    from transforms.profiles.load import list_profiles, load_profile

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("profile", "default checkpoint", "licence", "frame", "asks"):
        table.add_column(column, overflow="fold")
    for name in list_profiles():
        profile = load_profile(name)
        first = profile.checkpoints[0]
        frame = profile.frame.value if profile.frame is not None else "unknown: set model.frame"
        table.add_row(name, first.id, first.licence, frame, ", ".join(sorted(profile.tasks)))
    show(table, output())


@profiles_app.command("show")
def show_one(
    name: Annotated[
        str, typer.Argument(help="A bundled name, or the path of a .toml file.", show_default=False)
    ],
) -> None:
    """Show one profile: checkpoints, frame, prompts, sampling, and where each fact was read."""
    from pipeline.profile_text import print_profile
    from transforms.profiles.load import load_profile

    print_profile(load_profile(name))
