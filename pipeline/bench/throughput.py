"""Raw vLLM and the job in turn, A B A B, on the same requests: how much of the limit is reached."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

from pydantic import JsonValue

from pipeline.bench.agents import STEPS, agent_requests, measured_agents
from pipeline.bench.engine import engine_for, settings_for
from pipeline.bench.systems import Round, composed_requests, fed_round, job_round, raw_round
from pipeline.bench.workloads import AGENTS, Workload, suitable, workload_job
from pipeline.config import JobConfig, OutputConfig
from pipeline.model import resolve_model
from pipeline.settings import DECODE_THREADS
from schemas.errors import PantallaError
from schemas.profile import ModelProfile
from transforms.engines.vllm import VllmEngine
from transforms.engines.vllm_whole import forget_everything
from transforms.profiles.load import load_profile

Status: TypeAlias = "Callable[[str], None]"
"""Is told when a step begins."""


class UnequalWorkError(PantallaError):
    """The systems did not do the same, so that a ratio of their times means nothing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One workload: the rounds of both systems, paired as they were run."""

    workload: Workload
    screens: int
    raw: tuple[Round, ...]
    job: tuple[Round, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Throughput of the job over that of raw vLLM, round by round."""
        return tuple(a.seconds / b.seconds for a, b in zip(self.raw, self.job, strict=True))


def bench_throughput(
    config: JobConfig,
    screens: int,
    rounds: int,
    names: tuple[str, ...] = (),
    status: Status = lambda _: None,
) -> list[Comparison]:
    """Measure every workload on one engine, after a round of each system that does not count.

    Args:
        config: its model, engine arguments and sampling are measured.
        screens: of each workload.
        rounds: of each system.
        names: of the workloads; none = all that a job of this model can ask.
        status: told when a step begins.

    Raises:
        ConfigError: if the model or a workload is refused.
        EngineError: if the engine does not start, or dies.
        UnequalWorkError: if a system answered fewer requests than the other.
    """
    profile = load_profile(config.model.profile)
    workloads = suitable(profile, names)
    status("Starting the engine")
    engine = engine_for(config, workloads)
    found = []
    try:
        with tempfile.TemporaryDirectory(prefix="pantalla-bench-") as folder:
            for workload in workloads:
                if workload == AGENTS:
                    systems = _agent_systems(engine, profile, screens, status)
                else:
                    systems = _job_systems(engine, config, workload, screens, Path(folder))
                found.append(_compare(workload, systems, engine, rounds, status))
    finally:
        engine.close()
    return found


@dataclass(frozen=True, slots=True)
class _Systems:
    """Both ways through one workload; ours is told which turn it is."""

    screens: int
    raw: Callable[[], Round]
    ours: Callable[[int], Round]


def _compare(
    workload: Workload, systems: _Systems, engine: VllmEngine, rounds: int, status: Status
) -> Comparison:
    raw, ours = [], []
    for turn in range(rounds + 1):
        status(
            f"{workload.name}: round {turn} of {rounds}" if turn else f"{workload.name}: warming"
        )
        forget_everything(engine)
        raw.append(systems.raw())
        forget_everything(engine)
        ours.append(systems.ours(turn))
        if raw[-1].samples != ours[-1].samples:
            raise UnequalWorkError(
                f"{workload.name}: raw vLLM answered {raw[-1].samples} requests, the job "
                f"{ours[-1].samples}"
            )
    return Comparison(workload, systems.screens, tuple(raw[1:]), tuple(ours[1:]))


def _job_systems(
    engine: VllmEngine, config: JobConfig, workload: Workload, screens: int, folder: Path
) -> _Systems:
    job = workload_job(config, workload, screens, folder)
    requests = composed_requests(job)

    def ours(turn: int) -> Round:
        place = OutputConfig(dataset=str(folder / f"{workload.name}-{turn}"))
        return job_round(engine, job.model_copy(update={"output": place}))

    return _Systems(screens, lambda: raw_round(engine, requests), ours)


def _agent_systems(
    engine: VllmEngine, profile: ModelProfile, screens: int, status: Status
) -> _Systems:
    agents, count = measured_agents(engine, profile), max(1, screens // STEPS)
    status(f"{AGENTS.name}: {agents.sizes}")

    requests = list(agent_requests(agents, count, DECODE_THREADS))
    return _Systems(
        count * STEPS,
        lambda: raw_round(engine, requests),
        lambda _: fed_round(engine, agent_requests(agents, count, DECODE_THREADS)),
    )


_HEADINGS = (
    "workload", "screens", "requests", "raw req/s", "job req/s", "job/raw", "of rounds",
    "raw cached", "job cached", "raw cpu s", "job cpu s",
)  # fmt: skip


def table_lines(found: Sequence[Comparison]) -> Iterator[str]:
    """The comparisons as aligned lines: medians, and the least and largest ratio."""
    lines = [_HEADINGS, *(_cells(one) for one in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    for first, *rest in lines:
        numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *numbers])


def _cells(one: Comparison) -> tuple[str, ...]:
    raw, job, ratios = one.raw, one.job, one.ratios
    return (
        one.workload.name,
        str(one.screens),
        str(raw[0].samples),
        f"{raw[0].samples / median(r.seconds for r in raw):.2f}",
        f"{job[0].samples / median(r.seconds for r in job):.2f}",
        f"{median(ratios):.3f}",
        f"{min(ratios):.2f}-{max(ratios):.2f}",
        f"{_cached(raw):.0%}",
        f"{_cached(job):.0%}",
        f"{median(r.cpu_seconds for r in raw):.1f}",
        f"{median(r.cpu_seconds for r in job):.1f}",
    )


def _cached(rounds: Sequence[Round]) -> float:
    return median(r.cached_tokens / max(r.prompt_tokens, 1) for r in rounds)


def as_json(found: Sequence[Comparison], config: JobConfig) -> JsonValue:
    """Every round, and what it was measured on."""
    model = resolve_model(config.model)
    return {
        "model": model.name,
        "revision": model.revision,
        "engine": dict(settings_for(config, [one.workload for one in found]).engine),
        "processors": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "workloads": [
            {
                **asdict(one.workload),
                "screens": one.screens,
                "ratio": median(one.ratios),
                "ratios": list(one.ratios),
                "raw": [asdict(r) for r in one.raw],
                "job": [asdict(r) for r in one.job],
            }
            for one in found
        ],
    }
