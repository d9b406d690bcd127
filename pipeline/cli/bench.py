"""`pantalla bench`: measure the job on the model and the machine that it will run on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.options import Overrides

bench_app = typer.Typer(
    help="Measure how fast a model, and the job around it, are on this machine.",
    no_args_is_help=True,
)


@bench_app.command(short_help="Compare the job with raw vLLM on the same requests.")
def throughput(
    config: Annotated[
        Path | None, typer.Option("--config", help="A job: its model and sampling are measured.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="one, eight, votes, listing; repeatable. Default: all.", show_default=False
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
    """
    import json

    from pipeline.bench.throughput import as_json, bench_throughput, table_lines
    from pipeline.cli.job import quiet_libraries
    from pipeline.config import load_config

    place = ('input.shards=["none"]', 'output.dataset="none"') if config is None else ()
    job = load_config(config, (*place, *(set_ or ())))
    quiet_libraries()
    found = bench_throughput(
        job,
        screens,
        rounds,
        tuple(workload or ()),
        lambda text: typer.echo(f"{text} ...", err=True),
    )
    typer.echo("\n".join(table_lines(found)))
    if out is not None:
        out.write_text(json.dumps(as_json(found, job), indent=1), encoding="utf-8")
        typer.echo(f"Written: {out}")
