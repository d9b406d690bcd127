"""`pantalla run`: the job, or the rest of it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from pipeline.cli.options import JobFile, Overrides

_BeamFlags: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- BEAM FLAGS]",
        help="Flags for Beam, after `--`; default runner: FnApiRunner.",
        show_default=False,
    ),
]
_Partition: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="I/N",
        help="Do only part I of N (from 1); other processes do the others.",
        show_default=False,
    ),
]
_NewVersion: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--new-version",
        help="Where the settings differ from the dataset's, make DATASET@v2, @v3, ...",
    ),
]
_Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Share the job among N processes of this machine, one engine and device each.",
        show_default=False,
    ),
]


def run(
    config: JobFile,
    beam_flags: _BeamFlags = None,
    partition: _Partition = None,
    new_version: _NewVersion = False,
    workers: _Workers = None,
    set_: Overrides = None,
) -> None:
    """Run a job: annotate what is not committed yet, push what needs people, write the report.

    A killed or failed run goes on where it stopped when it is started again. With --partition it
    annotates and reports that part only; run it once without, when all are done, to push.
    """
    from pipeline.cli.job import run_and_report
    from pipeline.config import load_config
    from pipeline.partition import parse_partition

    part = parse_partition(partition) if partition is not None else None
    job = load_config(config, tuple(set_ or ()))
    if workers is None or workers == 1:
        raise typer.Exit(run_and_report(job, beam_flags or (), part, new_version=new_version))
    if part is not None:
        raise typer.BadParameter("--workers and --partition do not go together: choose one")
    from pipeline.cli.workers import worker_command, workers_of

    command = worker_command(config, set_ or (), beam_flags or ())
    crew = workers_of(job, workers, command)
    code = run_and_report(job, beam_flags or (), new_version=new_version, workers=crew)
    raise typer.Exit(code)
