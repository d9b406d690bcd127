"""Runs a job for a person: progress while it runs, the summary when it is done."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence

from rich.console import Console

from pipeline.cli.watch import Watch
from pipeline.config import JobConfig
from pipeline.partition import Partition
from pipeline.progress import Progress
from pipeline.report.summary import print_summary
from pipeline.report.words import count_words
from pipeline.run import Push, RunOutcome, Workers, run_job
from pipeline.terminal import output

_QUIET_ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_OURS = ("pipeline", "transforms", "label_studio")


def run_and_report(
    config: JobConfig,
    beam_flags: Sequence[str] = (),
    partition: Partition | None = None,
    *,
    new_version: bool = False,
    workers: Workers | None = None,
) -> int:
    """Run a job or one partition, show its progress and its summary, and give its exit code.

    Raises:
        PantallaError: whatever `run_job` raises.
    """
    if "PANTALLA_DEBUG" not in os.environ:
        quiet_libraries()
    outcome = run_job(
        config,
        beam_flags,
        observer=Watch(Progress()),
        push=_push(config),
        partition=partition,
        new_version=new_version,
        workers=workers,
    )
    tell(outcome)
    return outcome.exit_code


def _push(config: JobConfig) -> Push | None:
    """The push, where there is a server to push to: its client takes seconds to import."""
    if config.label_studio.url is None:
        return None
    from pipeline.push import push_job

    return push_job


def tell(outcome: RunOutcome, console: Console | None = None) -> None:
    """Print the summary of a run, and where everything is."""
    console = console or output()
    console.print()
    print_summary(outcome.report.figures, console)
    console.print(f"\nReport:  {outcome.report.html_uri}", markup=False, soft_wrap=True)
    stats = outcome.report.figures.stats
    if stats.units_done == 0 and outcome.exit_code < 128:
        units = count_words(stats.units_reused, "unit")
        console.print(f"Nothing to do: {units} already committed, none recomputed.", markup=False)
    if outcome.reason:
        console.print(f"Exit code {outcome.exit_code}: {outcome.reason}", markup=False)


def quiet_libraries() -> None:
    """Let errors of libraries through and all our own words, but not the libraries' chatter.

    Environment variables that the user has set stay as they are; `--debug` keeps everything.
    """
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s: %(message)s")
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    # Beam logs every error of ours with its own stack before it raises it; it is told once.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    # It has a handler of its own, and says on every machine without a GPU that there is none.
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    for variable, value in _QUIET_ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
