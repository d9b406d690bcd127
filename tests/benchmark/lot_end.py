"""What the end of a lot costs: `python -m tests.benchmark.lot_end SCREENS QUERIES`.

Runs two lots of SCREENS drawn screens with QUERIES questions each on a scripted engine of 256
places, whose answers take 60 steps of 30 ms, as a GPU might. Prints for how long the engine was not
full around the end of the first lot, how much full speed that lost, and of how long a lot of 64
units of 64 screens that is. Figures are printed, nothing is asserted.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pipeline.annotate import annotate_here
from pipeline.bench.workloads import Workload, workload_job
from pipeline.claim import claim_plan
from pipeline.config import JobConfig, OutputConfig, load_config
from pipeline.plan import make_plan
from pipeline.settings import worker_settings
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.holder import hold_engine, release_engine
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

PLACES, STEPS, STEP_SECONDS = 256, 60, 0.03
FULL = 0.98 * PLACES
LOT_SCREENS = 64 * 64


class Watched(ScriptedEngine):
    """Remembers when it was stepped, and how many requests it held."""

    def __init__(self) -> None:
        latency = ScriptedLatency(STEPS, PLACES, shuffle_seed=None, sleep=STEP_SECONDS)
        super().__init__(nothing, latency, PLACES)
        self.seen: list[tuple[float, int]] = []
        self.answered = 0

    def collect(self) -> list[Answer]:
        """One step."""
        self.seen.append((time.monotonic(), len(self.submitted) - self.answered))
        answers = super().collect()
        self.answered += len(answers)
        return answers


def nothing(request: EngineRequest) -> Answer:
    """An empty list."""
    return Answer(request.request_id, (Completion("[]", "stop", 1),) * request.n, 10)


def run(config: JobConfig, engine: Watched) -> float:
    """Annotate two lots; returns when the first one ended, in monotonic seconds."""
    plan = make_plan(config)
    settings = worker_settings(config, plan, lambda: engine)
    claim_plan(plan, settings)
    first, second = plan.lots(frozenset(), len(plan.units) // 2)
    hold_engine(settings.engine_factory, settings.run_id)
    try:
        list(annotate_here(first, settings))
        ended = time.monotonic()
        list(annotate_here(second, settings))
    finally:
        release_engine()
    return ended


def main(screens: int, queries: int) -> None:
    """Run and print."""
    engine = Watched()
    places = ('input.shards=["none"]', 'output.dataset="none"', "sampling.k=1", 'model.probe="off"')
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload("lots", queries)
        made = workload_job(load_config(None, places), workload, 2 * screens, Path(folder))
        output = OutputConfig(dataset=f"{folder}/dataset")
        ended = run(made.model_copy(update={"output": output}), engine)
    seen = engine.seen
    last = max(place for place, (when, _) in enumerate(seen) if when < ended)
    begin = max(place for place in range(last) if seen[place][1] >= FULL)
    end = min(place for place in range(last + 1, len(seen)) if seen[place][1] >= FULL)
    lost = sum(
        (seen[place + 1][0] - seen[place][0]) * (1 - seen[place][1] / PLACES)
        for place in range(begin, end)
    )
    lot = LOT_SCREENS * queries * STEPS * STEP_SECONDS / PLACES
    window = seen[end][0] - seen[begin][0]
    print(f"{queries} questions a screen: not full for {window:.2f} s, which cost {lost:.2f} s of")
    print(f"full speed: {lost / lot:.2%} of a lot of 64 units, which takes {lot:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
