"""Beam's own flags: safe defaults, and unknown ones refused instead of dropped in silence."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from schemas.errors import ConfigError

RUNNER = "--runner=FnApiRunner"
"""The default: Beam's `DirectRunner` first tries to download another runner and can hang on it."""


def beam_options(arguments: Sequence[str]) -> PipelineOptions:
    """Options for the pipeline from the flags after `--` on the command line.

    Raises:
        ConfigError: naming the flags that Beam does not know.
    """
    flags = list(arguments)
    if not any(flag.split("=")[0] == "--runner" for flag in flags):
        flags.insert(0, RUNNER)
    if _is_dask(flags):
        flags += _dask_defaults(flags)
    options = PipelineOptions(flags)
    known = options.get_all_options().keys()
    unknown = sorted(options.get_all_options(retain_unknown_options=True).keys() - known)
    stray = [flag for flag in flags if flag.startswith("-") and not flag.startswith("--")]
    if unknown or stray:
        names = ", ".join([*(f"--{name}" for name in unknown), *stray])
        raise ConfigError(f"Beam does not know these flags after `--`: {names}")
    return options


def _is_dask(flags: Sequence[str]) -> bool:
    """Whether the runner is Dask's, whose options exist only once its module was imported.

    Raises:
        ConfigError: if it is, and Dask is not installed.
    """
    runner = str(PipelineOptions(list(flags)).view_as(StandardOptions).runner)
    if "dask" not in runner.lower():
        return False
    if find_spec("distributed") is None:
        raise ConfigError(
            "Dask is not installed here: install `apache-beam[dask]` at the version of apache-beam "
            "that is installed, here and where the workers run"
        )
    import_module("apache_beam.runners.dask.dask_runner")
    return True


def _dask_defaults(flags: Sequence[str]) -> list[str]:
    """One lot a task, where nothing else is said: Beam's own default gives one worker 128 lots."""
    names = {flag.split("=")[0] for flag in flags}
    said = {"--dask_npartitions", "--dask_partition_size"}
    return [] if names & said else ["--dask_partition_size=1"]
