"""Peak memory of a job over few and over many screens: it must not grow with their number.

Run: python -m tests.benchmark.flat_memory [FEW MANY]

Each run is a process of its own with the scripted engine, over one tar of small screens, every one
another picture. Prints the peak resident memory of each and their ratio.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from functools import partial
from pathlib import Path

from PIL import Image

FEW, MANY = 2_000, 20_000
ROOT = Path(__file__).resolve().parents[2]
SIDE = 64


def main(few: int, many: int) -> float:
    """Measure both; returns the ratio of the peaks."""
    peaks = [measure(count) for count in (few, many)]
    ratio = peaks[1] / peaks[0]
    print(f"{many} screens take {ratio:.3f} times the peak memory of {few}")
    return ratio


def measure(count: int) -> int:
    """Peak resident memory, in bytes, of a job over `count` screens."""
    with tempfile.TemporaryDirectory(prefix="pantalla-flat-") as folder:
        write_tar(Path(folder) / "a.tar", count)
        command = [sys.executable, "-m", "tests.benchmark.flat_memory", "job", folder]
        started = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        said = subprocess.run(
            command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        found = json.loads(said.splitlines()[-1])
        seconds = time.monotonic() - started
    assert found["screens"] == count
    print(f"{count:>6} screens: peak {found['peak'] / 2**20:.0f} MiB, {seconds:.0f} s")
    return int(found["peak"])


def write_tar(path: Path, count: int) -> None:
    """A tar of `count` distinct screens with one query each, written as a stream."""
    with tarfile.open(path, "w") as archive:
        for number in range(count):
            sidecar = json.dumps({"queries": [{"instruction": f"Presioná el botón {number}"}]})
            for suffix, data in (("png", picture(number)), ("json", sidecar.encode())):
                info = tarfile.TarInfo(f"pantalla-{number:06d}.{suffix}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def picture(number: int) -> bytes:
    """A small picture that no other number has."""
    image = Image.new("RGB", (SIDE, SIDE), "white")
    for bit in range(20):
        if number >> bit & 1:
            image.paste((0, 0, 128), (3 * bit, 8, 3 * bit + 2, 40))
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


def job(folder: Path) -> None:
    """The job itself; prints its peak."""
    from pipeline.config import InputConfig, JobConfig, ModelConfig, OutputConfig, SamplingConfig
    from pipeline.run import run_job
    from schemas.records import Answer, Completion
    from transforms.engines.base import EngineRequest
    from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

    def answer(request: EngineRequest) -> Answer:
        text = '[{"bbox_2d":[100,100,300,600],"label":"button"}]'
        return Answer(request.request_id, (Completion(text, "stop", 9),), 100)

    config = JobConfig(
        input=InputConfig(shards=(str(folder / "a.tar"),)),
        output=OutputConfig(dataset=str(folder / "dataset")),
        model=ModelConfig(profile="nano", probe="off"),  # scripted answers fit no probe
        sampling=SamplingConfig(k=1),
    )
    latency = ScriptedLatency(hold=1, per_collect=16)
    outcome = run_job(config, engine_factory=partial(ScriptedEngine, answer, latency, 32))
    assert outcome.exit_code == 0, outcome.reason
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"screens": outcome.report.figures.counts.screens, "peak": peak}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["job"]:
        job(Path(sys.argv[2]))
    else:
        chosen = [int(text) for text in sys.argv[1:3]] or [FEW, MANY]
        main(*chosen)
