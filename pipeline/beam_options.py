"""Beam's own flags: safe defaults, and unknown ones refused instead of dropped in silence."""

from __future__ import annotations

from collections.abc import Sequence

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
    options = PipelineOptions(flags)
    _register_runner_options(options)
    known = options.get_all_options().keys()
    unknown = sorted(options.get_all_options(retain_unknown_options=True).keys() - known)
    stray = [flag for flag in flags if flag.startswith("-") and not flag.startswith("--")]
    if unknown or stray:
        names = ", ".join([*(f"--{name}" for name in unknown), *stray])
        raise ConfigError(f"Beam does not know these flags after `--`: {names}")
    return options


def _register_runner_options(options: PipelineOptions) -> None:
    """Dask's options exist only once its module was imported."""
    if "dask" in str(options.view_as(StandardOptions).runner).lower():
        from apache_beam.runners.dask import dask_runner

        dask_runner.DaskOptions  # noqa: B018 - importing it registers it
