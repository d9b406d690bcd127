"""A job with real vLLM in a process of its own, which is killed in the middle.

Usage: python vllm_job.py FOLDER HOW; HOW is `engine` (its process is killed after the first unit)
or `job` (this process is). Writes the ids of the engine's processes to FOLDER/engines, a line a
start.
"""

import dataclasses
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from job_fixtures import job, shots, write_shard

from pipeline.attend import end_process
from pipeline.config import EngineConfig, SamplingConfig
from pipeline.nano.checkpoint import ensure_checkpoint
from pipeline.observer import Observer
from pipeline.run import run_job
from schemas.commits import CommitRecord
from transforms.engines.base import Engine
from transforms.engines.processes import engine_processes
from transforms.engines.vllm import start_vllm, vllm_settings
from transforms.engines.vllm_settings import VllmSettings
from transforms.profiles.load import load_profile


class Killer(Observer):
    """Kills when the first unit is committed."""

    def __init__(self, how: str) -> None:
        self.how = how

    def advance(self, record: CommitRecord) -> None:
        how, self.how = self.how, ""
        if how == "engine":
            engine_processes()[0].kill()
        elif how == "job":
            os.kill(os.getpid(), signal.SIGKILL)


def start(settings: VllmSettings, folder: Path) -> Engine:
    """Start the engine and write down its processes."""
    engine = start_vllm(settings)
    with (folder / "engines").open("a") as file:
        print(*(process.pid for process in engine_processes()), file=file)
    return engine


def main(folder: Path, how: str) -> int:
    """Run the job; returns its exit code."""
    config = job(
        folder,
        write_shard(folder / "a.tar", shots(6)),
        engine=EngineConfig(max_rebuilds=3),
        sampling=SamplingConfig(k=1),
    )
    settings = vllm_settings(
        load_profile("nano"),
        str(ensure_checkpoint()),
        overrides={"max_num_seqs": 4, "max_model_len": 2048},
        name="nano",
    )
    apart = dataclasses.replace(settings, apart=True)
    factory = partial(start, apart, folder)
    return run_job(config, observer=Killer(how), engine_factory=factory).exit_code


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    code = main(Path(sys.argv[1]), sys.argv[2])
    end_process(code)
    sys.exit(code)
