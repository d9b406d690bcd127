"""Raw vLLM and the job in turn, A B A B, on the same requests: how much of the limit is reached."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from pydantic import JsonValue

from pipeline.bench.systems import Round, composed_requests, job_round, raw_round
from pipeline.bench.workloads import Workload, suitable, workload_job
from pipeline.config import JobConfig, OutputConfig
from pipeline.model import resolve_model
from schemas.errors import PantallaError
from transforms.engines.vllm import VllmEngine, start_vllm
from transforms.engines.vllm_whole import forget_everything
from transforms.profiles.load import load_profile


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
    status: Callable[[str], None] = lambda _: None,
) -> list[Comparison]:
    """Measure every workload on one engine, after a round of each system that does not count.

    Args:
        config: its model, engine arguments and sampling are measured.
        screens: of each workload.
        rounds: of each system.
        names: of the workloads; none = all that the model can be asked.
        status: told when a step begins.

    Raises:
        ConfigError: if the model or a workload is refused.
        EngineError: if the engine does not start, or dies.
        UnequalWorkError: if a system answered fewer requests than the other.
    """
    workloads = suitable(load_profile(config.model.profile), names)
    status("Starting the engine")
    engine = start_vllm(resolve_model(config.model).vllm)
    try:
        with tempfile.TemporaryDirectory(prefix="pantalla-bench-") as folder:
            return [
                _compare(engine, config, workload, screens, rounds, Path(folder), status)
                for workload in workloads
            ]
    finally:
        engine.close()


def _compare(
    engine: VllmEngine,
    config: JobConfig,
    workload: Workload,
    screens: int,
    rounds: int,
    folder: Path,
    status: Callable[[str], None],
) -> Comparison:
    job = workload_job(config, workload, screens, folder)
    requests = composed_requests(job)
    raw, ours = [], []
    for turn in range(rounds + 1):
        status(
            f"{workload.name}: round {turn} of {rounds}" if turn else f"{workload.name}: warming"
        )
        forget_everything(engine)
        raw.append(raw_round(engine, requests))
        forget_everything(engine)
        place = OutputConfig(dataset=str(folder / f"{workload.name}-{turn}"))
        ours.append(job_round(engine, job.model_copy(update={"output": place})))
        if raw[-1].samples != ours[-1].samples:
            raise UnequalWorkError(
                f"{workload.name}: raw vLLM answered {raw[-1].samples} requests, the job "
                f"{ours[-1].samples}"
            )
    return Comparison(workload, screens, tuple(raw[1:]), tuple(ours[1:]))


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
        "engine": dict(model.vllm.engine),
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
