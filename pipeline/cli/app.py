"""The `pantalla` command. Verbs import what is heavy inside themselves: help must be instant."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from pipeline.cli.bench import bench_app
from pipeline.cli.clean import clean
from pipeline.cli.demo import demo
from pipeline.cli.errors import exit_code, message
from pipeline.cli.gold import gold
from pipeline.cli.plan import plan
from pipeline.cli.probe import probe
from pipeline.cli.profiles import profiles_app
from pipeline.cli.pull import pull
from pipeline.cli.push import push
from pipeline.cli.recipes import recipes
from pipeline.cli.rejects import rejects
from pipeline.cli.review import review_app
from pipeline.cli.run import run
from pipeline.cli.shard import shard
from pipeline.cli.show import show
from pipeline.cli.studio import studio
from pipeline.cli.verify import verify
from schemas.errors import PantallaError

app = typer.Typer(
    name="pantalla",
    help="Grounding and localization annotations for screenshots in Spanish.",
    epilog="Start with `pantalla demo`. `pantalla VERB --help` says more about one verb.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pantalla {version('pantalla')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error, and library logs.")
    ] = False,
) -> None:
    """Grounding and localization annotations for screenshots in Spanish."""


app.command(short_help="Run everything on bundled screens, on the CPU.")(demo)
app.command(short_help="Say what a job would do, and what it may cost.")(plan)
app.command(short_help="Run a job, or the rest of it.")(run)
app.command(short_help="Show a sample, and draw it on its screen.")(show)
app.command(short_help="Send uncertain samples to Label Studio.")(push)
app.command(short_help="Show what could not be used, and take one out for a look.")(rejects)
app.add_typer(review_app, name="review", short_help="Look after the reviews.")
app.command(short_help="Bring reviews from Label Studio into the dataset.")(pull)
app.command(short_help="Write what reviewers vouch for as one table.")(gold)
app.command(short_help="Pack a folder of screenshots into tars.")(shard)
app.command(short_help="Start a local Label Studio.")(studio)
app.command(short_help="Print a recipe for a scheduler.")(recipes)
app.command(short_help="Check that a dataset is whole.")(verify)
app.command(short_help="Remove what killed runs left in a dataset.")(clean)
app.command(short_help="Find out in which frame a model gives coordinates.")(probe)
app.add_typer(bench_app, name="bench", short_help="Measure speed on this machine.")
app.add_typer(profiles_app, name="profiles", short_help="List the models this version knows.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the codes of the design.

    Args:
        arguments: without the program's name; default: those of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    own = words.index("--") if "--" in words else len(words)
    debug = "--debug" in words[:own]
    words = [word for i, word in enumerate(words) if i >= own or word != "--debug"]
    if debug:
        os.environ["PANTALLA_DEBUG"] = "1"  # read where library logs are silenced
    try:
        app(args=words, prog_name="pantalla")
    except PantallaError as error:
        if debug:
            raise
        typer.echo(f"pantalla: {message(error)}", err=True)
        _end(exit_code(error))
    except SystemExit as end:
        _end(end.code)


def _end(code: int | str | None) -> NoReturn:
    """Leave with `code`, also past an engine that no longer returns."""
    if "pipeline.attend" in sys.modules and isinstance(code, int):
        from pipeline.attend import end_process

        end_process(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
