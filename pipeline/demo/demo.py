"""The demo's job, and the file that lets its user go on from there."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.config import InputConfig, JobConfig, ModelConfig, OutputConfig

UNIT_SCREENS = 4
"""Small units, so that the screens make several and a stopped demo has something to go on."""

JOB_FILE = "job.toml"


def screens_dir() -> Path:
    """The folder of the bundled real screens."""
    return Path(__file__).parent / "screens"


def drawn_dir() -> Path:
    """The folder of the bundled drawn screens, which the demo's model knows."""
    return Path(__file__).parent / "drawn"


def demo_shards() -> tuple[str, ...]:
    """The demo's input: drawn screens, then real ones."""
    return str(drawn_dir() / "*.tar"), str(screens_dir() / "*.tar")


def demo_config(dataset_dir: Path) -> JobConfig:
    """The demo's job.

    Args:
        dataset_dir: where its dataset goes.
    """
    return JobConfig(
        input=InputConfig(shards=demo_shards(), unit_screens=UNIT_SCREENS),
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
    shards = ", ".join(json.dumps(shard, ensure_ascii=False) for shard in demo_shards())
    return f"""\
# The job that `pantalla demo` runs. Paths are relative to this file.

[input]
shards = [{shards}]
unit_screens = {UNIT_SCREENS}

[output]
dataset = "."          # a dataset holds one model and one set of settings: change both together

[model]
profile = "nano"       # knows drawn screens only; `pantalla profiles` lists real models
"""
