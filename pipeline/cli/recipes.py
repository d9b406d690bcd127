"""`pantalla recipes`: how schedulers run a job."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from typing import Annotated

import typer

from schemas.errors import ConfigError


class Recipe(StrEnum):
    """The recipes there are."""

    CRON = "cron"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    AIRFLOW = "airflow"


_FILES = {
    Recipe.CRON: "cron.sh",
    Recipe.SLURM: "slurm.sh",
    Recipe.KUBERNETES: "kubernetes.yaml",
    Recipe.AIRFLOW: "airflow.py.txt",
}


def recipe_text(recipe: Recipe) -> str:
    """The recipe's file.

    Raises:
        ConfigError: if the package was installed without it.
    """
    try:
        return (files("pipeline.recipes") / _FILES[recipe]).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the recipe {recipe} is not installed: {error}") from error


def recipes(
    recipe: Annotated[
        Recipe | None, typer.Argument(help="Which one; default: list them.", show_default=False)
    ] = None,
) -> None:
    """Print a recipe for a scheduler; each says at its top how far it was tried.

    For example: pantalla recipes slurm > slurm.sh
    """
    if recipe is not None:
        typer.echo(recipe_text(recipe), nl=False)
        return
    for one in Recipe:
        lines = recipe_text(one).splitlines()
        about = next(line for line in lines if "pantalla:" in line)
        typer.echo(f"{one:12}{about.partition('pantalla: ')[2].strip()}")
