"""What the job costs without a model: `python -m tests.benchmark.job_alone [--profile-calls]`.

An engine that answers at once, screens of 1280x800 from a tar to Parquet. Screens a second and core
are screens over CPU seconds of the whole process, so that a busy machine disturbs it little.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pipeline.bench.systems import Round, job_round
from pipeline.bench.workloads import Workload, screens_tar
from pipeline.config import JobConfig
from schemas.geometry import Size
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency
from transforms.probe.scene import draw_scenes

SIZE = Size(1280, 800)


def at_once(request: EngineRequest) -> Answer:
    """A box in the middle, whatever is asked."""
    text = '[{"bbox_2d":[400,400,600,600],"label":"button"}]'
    return Answer(request.request_id, (Completion(text, "stop", 20),) * request.n, 1000)


def job(folder: Path, screens: int, queries: int, k: int) -> JobConfig:
    """A job over `screens` drawn screens, without an output yet."""
    scenes = (draw_scenes([SIZE], 8, seed)[0] for seed in range(screens))
    shard = folder / "screens.tar"
    shard.write_bytes(screens_tar(scenes, Workload("alone", queries, k)))
    return JobConfig.model_validate(
        {
            "input": {"shards": [str(shard)]},
            "output": {"dataset": "none"},
            "model": {"profile": "qwen3-vl", "probe": "off"},
            "sampling": {"k": k},
        }
    )


def one_round(config: JobConfig, place: Path) -> Round:
    """The whole job once, into a new dataset."""
    output = config.output.model_copy(update={"dataset": str(place)})
    engine = ScriptedEngine(at_once, ScriptedLatency(per_collect=256), 256)
    return job_round(engine, config.model_copy(update={"output": output}))


STAGES = {
    "plan": ("pipeline/plan.py", "make_plan"),
    "read": ("transforms/shards/read.py", "read_unit"),
    "decode": ("transforms/decode.py", "decode_image"),
    "  of it inflating and filtering": ("~", "<method 'decode' of 'ImagingDecoder' objects>"),
    "sidecar": ("transforms/sidecar.py", "parse_sidecar"),
    "queries and screen": ("transforms/load.py", "_screen"),
    "resize and compose": ("transforms/ask.py", "_compose"),
    "feed the engine": ("transforms/infer.py", "_fill"),
    "judge": ("transforms/judge.py", "judge"),
    "rows": ("transforms/rows.py", "annotation_rows"),
    "tables": ("transforms/rows.py", "to_table"),
    "write and commit": ("transforms/commit.py", "commit"),
}
"""The function whose time is a stage's: where a file ends, and its name."""


def profiled(work: Callable[[], object]) -> pstats.Stats:
    """CPU time of every call of `work`, in whatever thread."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:  # the first event of a new thread
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    begin()
    try:
        work()
    finally:
        profiles[0].disable()
        threading.setprofile(None)
    return pstats.Stats(*profiles)


def print_stages(stats: pstats.Stats, screens: int) -> None:
    """Milliseconds of CPU a screen by stage, as profiled: small calls cost twice what they do."""
    calls = stats.stats  # type: ignore[attr-defined]  # as documented by pstats
    print("\nCPU ms a screen, profiled")
    for stage, (file, name) in STAGES.items():
        spent = sum(v[3] for k, v in calls.items() if k[0].endswith(file) and k[2] == name)
        print(f"{stage:32}{spent / screens * 1000:8.2f}")


def main() -> None:
    """Print screens a second and core, and where the time goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screens", type=int, default=128)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--k", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile-calls", action="store_true", help="of all threads, in CPU time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = job(folder, options.screens, options.queries, options.k)
        one_round(config, folder / "warm")
        rounds = [one_round(config, folder / f"{turn}") for turn in range(options.rounds)]
        core = [options.screens / found.cpu_seconds for found in rounds]
        wall = [options.screens / found.seconds for found in rounds]
        print(f"{options.screens} screens of {SIZE.width}x{SIZE.height}, {options.queries} queries")
        print(f"screens/s per core: {median(core):.1f} ({min(core):.1f} to {max(core):.1f})")
        print(f"screens/s of wall:  {median(wall):.1f} ({min(wall):.1f} to {max(wall):.1f})")
        if options.profile_calls:
            stats = profiled(lambda: one_round(config, folder / "profiled"))
            print_stages(stats, options.screens)
            stats.sort_stats("tottime").print_stats(18)


if __name__ == "__main__":
    main()
