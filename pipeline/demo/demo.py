"""The demo's job, and the file that lets its user go on from there."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.config import InputConfig, JobConfig, ModelConfig, OutputConfig

UNIT_SCREENS = 4
"""Small units, so that a dozen screens make several and a stopped demo has something to go on."""

JOB_FILE = "job.toml"


def screens_dir() -> Path:
    """The folder of the bundled shards."""
    return Path(__file__).parent / "screens"


def demo_config(dataset_dir: Path) -> JobConfig:
    """The demo's job.

    Args:
        dataset_dir: where its dataset goes.
    """
    return JobConfig(
        input=InputConfig(shards=(str(screens_dir() / "*.tar"),), unit_screens=UNIT_SCREENS),
        output=OutputConfig(dataset=str(dataset_dir.resolve())),
        model=ModelConfig(profile="nano"),
    )


def write_job_file(dataset_dir: Path) -> Path:
    """Write the same job as a file into its dataset, for `plan`, `run` and `push`."""
    path = dataset_dir / JOB_FILE
    dataset_dir.mkdir(parents=True, exist_ok=True)
    path.write_text(_job_text(), encoding="utf-8")
    return path


def _job_text() -> str:
    shards = json.dumps(str(screens_dir() / "*.tar"), ensure_ascii=False)
    return f"""\
# The job that `pantalla demo` runs. Paths are relative to this file.

[input]
shards = [{shards}]
unit_screens = {UNIT_SCREENS}

[output]
dataset = "."          # a dataset holds one model and one set of settings: change both together

[model]
profile = "nano"       # random weights; `pantalla profiles` lists real ones
"""
