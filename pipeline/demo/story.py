"""Runs the demo and says what happens, step by step."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console

from pipeline.cli.job import run_and_report
from pipeline.dataset import open_dataset
from pipeline.demo.demo import demo_config, screens_dir, write_job_file
from pipeline.estimate import estimate
from pipeline.nano.checkpoint import ensure_checkpoint
from pipeline.report.words import count_words
from pipeline.terminal import output


def tell_demo(folder: Path, console: Console | None = None) -> int:
    """Run the demo into `folder`, or say that it is all done; gives the exit code.

    Raises:
        PantallaError: whatever the run raises.
    """
    say = _Teller(console or output())
    config = demo_config(folder)
    checkpoint = ensure_checkpoint()
    found = estimate(config)
    say.step(
        f"Screens: {found.screens} in {len(found.shards)} WebDataset tars: drawn ones, harder "
        "ones, and real Spanish pages of Django admin, Wagtail, django-oscar and JupyterLab",
        str(screens_dir().parent),
    )
    say.step(
        "Model: nano, 2.3 million parameters. It knows 64 buttons on drawn screens, is sometimes "
        "wrong on the harder ones and lost on real pages: watch where its answers go",
        str(checkpoint),
    )
    if found.units_done < found.units:
        questions = count_words(found.queries or 0, "question")
        say.step(
            "Run: starting vLLM on this machine (half a minute without a GPU, up to two the first "
            f"time), then {questions} about the screens, several answers each, "
            f"{found.answers or 0} in all"
        )
    code = run_and_report(config)
    _say_where(say, folder, write_job_file(folder))
    return code


class _Teller:
    """Numbers the steps of the story."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._number = 0

    def step(self, text: str, detail: str = "") -> None:
        """One numbered step, with a path or an address below it."""
        self._number += 1
        self.line(f"{self._number}. {text}.")
        if detail:
            self.line(f"   {detail}")

    def line(self, text: str) -> None:
        """One line as it is, never wrapped inside a path or a command."""
        self._console.print(text, markup=False, soft_wrap=True)


def _say_where(say: _Teller, folder: Path, job_file: Path) -> None:
    sample = next((s.sample_id[:12] for s in open_dataset(str(folder)).samples()), "SAMPLE")
    query = (
        "select route, status, count(*) as samples "  # noqa: S608 - printed, never run here
        f"from '{folder}/annotations/*.parquet' where element_index = 0 group by all"
    )
    say.line(f"Dataset: {folder}  (annotations, screens and rejects as Parquet)")
    say.line("\nNext:")
    say.line(f'  {_python_with("duckdb")} -c "import duckdb; print(duckdb.sql(\\"{query}\\"))"')
    pantalla = _near(Path(sys.executable).with_name("pantalla"))
    say.line(f"  {pantalla} show {folder} {sample}")
    say.line(f"  {pantalla} studio        # then, in another terminal, with the token it prints:")
    say.line(f"  {pantalla} push {folder} --url http://127.0.0.1:8080")
    say.line(f"\nThe same job as a file to change: {job_file}")


def _python_with(package: str) -> str:
    """A Python that has `package`; uv says where it is, and lends what is not installed."""
    if "UV" in os.environ:
        return f"{_near(Path(os.environ['UV']))} run --no-sync --with {package} python"
    return str(_near(Path(sys.executable)))


def _near(path: Path) -> Path:
    """`path` as one would type it here: relative where it lies below the working directory."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
