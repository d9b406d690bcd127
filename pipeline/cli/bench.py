"""`pantalla bench`: measure the job on the model and the machine that it will run on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from pipeline.cli.options import Overrides

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pipeline.bench.sweep import Sweep
    from pipeline.config import JobConfig

JobOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="A job: its model and sampling are measured.")
]
RequestsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Requests of a level that count, in whole rounds of what is in flight. "
        "Default: four rounds, at least 32.",
        show_default=False,
    ),
]
PriceOption: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0, help="Of the machine. Default: cost.machine_hour.", show_default=False),
]

bench_app = typer.Typer(
    help="Measure how fast a model, and the job around it, are on this machine.",
    no_args_is_help=True,
)


@bench_app.command(short_help="Compare the job with raw vLLM on the same requests.")
def throughput(
    config: JobOption = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="one, eight, votes, listing, agents; repeatable. Default: all but agents.",
            show_default=False,
        ),
    ] = None,
    screens: Annotated[int, typer.Option(min=1, help="Screens of each workload.")] = 48,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each system that count.")] = 5,
    out: Annotated[Path | None, typer.Option(help="Write every round to this JSON file.")] = None,
    set_: Overrides = None,
) -> None:
    """Ask the same questions about drawn screens through raw vLLM and through the job, in turn.

    Raw is one call of `LLM.chat` with decoded images in memory; the job goes from a tar to
    Parquet. Caches are emptied before each round. `job/raw` is 1 where the job costs nothing.

    The job shows the model one screen a request, `agents` up to three and a long text: there
    "job" is its way of feeding alone, PNG files decoded in threads ahead, without Parquet. All
    requests are independent, in the order of a hundred agents at work: their first steps, then
    their second ones. The engine is started for three images a prompt.
    """
    from pipeline.bench.sweep_plot import check_files
    from pipeline.bench.throughput import as_json, bench_throughput, table_lines
    from pipeline.cli.job import quiet_libraries

    job = _job(config, set_)
    check_files(out, None)
    quiet_libraries()
    found = bench_throughput(job, screens, rounds, tuple(workload or ()), _say)
    typer.echo("\n".join(table_lines(found)))
    if out is not None:
        _write(out, as_json(found, job))


def _job(config: Path | None, overrides: list[str] | None) -> JobConfig:
    """The job of a benchmark, which needs neither shards nor a dataset."""
    from pipeline.config import load_config

    place = ('input.shards=["none"]', 'output.dataset="none"') if config is None else ()
    return load_config(config, (*place, *(overrides or ())))


@bench_app.command(short_help="Measure the engine with 1, 2, 4, ... 128 requests in flight.")
def sweep(
    config: JobOption = None,
    workload: Annotated[str, typer.Option(help="one, eight, votes, listing or agents.")] = "one",
    in_flight: Annotated[
        str, typer.Option(help="Requests that are kept in the engine, level by level.")
    ] = "1,2,4,8,16,32,64,128",
    requests: RequestsOption = None,
    price_per_hour: PriceOption = None,
    out: Annotated[Path | None, typer.Option(help="Write every level to this JSON file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the levels: FILE.svg or FILE.png.")
    ] = None,
    set_: Overrides = None,
) -> None:
    """Keep exactly N requests in vLLM, the next one submitted as soon as one is finished.

    Caches are emptied before each level. A first round fills the engine and does not count; what
    is unfinished at the end does not count either. An agent's next step follows the answer to the
    one before. vLLM's own counters are on meanwhile, for the time to the first token.
    """
    from pipeline.bench.sweep import bench_sweep, parse_levels
    from pipeline.bench.sweep_plot import check_files
    from pipeline.bench.workloads import suitable
    from pipeline.cli.job import quiet_libraries
    from transforms.profiles.load import load_profile

    price = () if price_per_hour is None else (f"cost.machine_hour={price_per_hour}",)
    job, levels = _job(config, [*(set_ or ()), *price]), parse_levels(in_flight)
    (chosen,) = suitable(load_profile(job.model.profile), (workload,))
    check_files(out, plot)
    quiet_libraries()
    _show(bench_sweep(job, chosen, levels, requests, _say), job, out, plot)


def _write(place: Path, said: JsonValue) -> None:
    import json

    from schemas.errors import ConfigError

    try:
        place.write_text(json.dumps(said, indent=1), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {place}: {error}") from error
    typer.echo(f"Written: {place}")


def _say(text: str) -> None:
    typer.echo(f"{text} ...", err=True)


def _show(found: Sweep, job: JobConfig, out: Path | None, plot: Path | None) -> None:
    """Print a sweep and write the files that were asked for."""
    from pipeline.bench.sweep_plot import plot_sweep
    from pipeline.bench.sweep_text import sweep_json, sweep_lines
    from pipeline.model import resolve_model

    typer.echo("\n".join(sweep_lines(found)))
    if out is not None:
        _write(out, sweep_json(found, job))
    if plot is not None:
        plot_sweep(found, resolve_model(job.model).name, plot)
        typer.echo(f"Written: {plot}")
