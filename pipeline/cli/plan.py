"""`pantalla plan`: what a job would do, and what it may cost, before anything runs."""

from __future__ import annotations

from pipeline.cli.options import AsJson, JobFile, Overrides


def plan(config: JobFile, set_: Overrides = None, *, json: AsJson = False) -> None:
    """Say what a job would do: shards, units, screens, samples, what is done, time and cost.

    Nothing is decoded and no model is loaded.
    """
    import typer

    from pipeline.config import load_config
    from pipeline.estimate import estimate, estimate_json
    from pipeline.estimate_text import print_estimate

    found = estimate(load_config(config, tuple(set_ or ())))
    if json:
        typer.echo(estimate_json(found))
    else:
        print_estimate(found)
