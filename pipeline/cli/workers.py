"""From `--workers N` to the processes that do the work."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pipeline.config import JobConfig
from pipeline.devices import visible_devices, worker_environments
from pipeline.heartbeat import Heartbeat
from pipeline.partition import Partition
from pipeline.run import Ready, Workers
from pipeline.workers import Command, make_crew

_POLL_SECONDS = 2.0


def worker_command(config: Path, overrides: Sequence[str], beam_flags: Sequence[str]) -> Command:
    """The same job, one partition of it.

    Args:
        config: the job file.
        overrides: the `--set` options.
        beam_flags: what stands after `--`.
    """

    def command(partition: Partition, dataset: str) -> list[str]:
        own = [sys.executable, "-m", "pipeline.cli.app", "run", str(config)]
        texts = [*overrides, f"output.dataset={dataset}"]  # which may be a new version of it
        options = [word for text in texts for word in ("--set", text)]
        flags = ["--", *beam_flags] if beam_flags else []
        return [*own, "--partition", str(partition), *options, *flags]

    return command


def workers_of(config: JobConfig, count: int, command: Command) -> Workers:
    """What annotates in place of this process.

    Raises:
        ConfigError: if there are fewer devices than workers need.
    """
    spans = config.model.engine.get("tensor_parallel_size", 1)
    environments = worker_environments(
        count, visible_devices(), spans if isinstance(spans, int) else 1
    )

    def annotate(ready: Ready, beat: Heartbeat) -> None:
        done = sum(unit.unit_id in ready.done for unit in ready.plan.units)
        beat.start(ready.plan, done)
        if done == len(ready.plan.units):
            return
        logs = Path(tempfile.mkdtemp(prefix="pantalla-workers-"))
        beat.status(f"Starting {count} workers; their logs are in {logs}")
        crew = make_crew(
            ready.plan,
            ready.settings.writer,
            command,
            environments,
            logs,
            every=max(_POLL_SECONDS, config.run.heartbeat_seconds),
            grace=config.run.grace_seconds,
        )
        try:
            crew.run(beat, ready.done)
        finally:
            beat.finish()

    return annotate
