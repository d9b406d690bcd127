"""A whole job whose engine dies, hangs or runs out of memory."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from job_fixtures import job, oracle, shots, write_shard

from pipeline.config import EngineConfig, LimitsConfig
from pipeline.dataset import open_dataset
from pipeline.run import run_job
from schemas.errors import EngineError
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import Mishap, ScriptedEngine, ScriptedLatency
from transforms.engines.start_errors import memory_advice

KNOWN = shots(5)
POISON = "papelera pantalla 2"


@dataclass(frozen=True)
class Poison:
    """Requests with this text do harm."""

    text: str
    mishap: Mishap

    def __call__(self, request: EngineRequest) -> Mishap | None:
        return self.mishap if self.text in request.prompt else None


def poisoned(mishap: Mishap = Mishap.DIES, text: str = POISON) -> partial[ScriptedEngine]:
    latency = ScriptedLatency(hold=1, per_collect=3)
    return partial(ScriptedEngine, oracle(KNOWN), latency, 6, mishap=Poison(text, mishap))


def rows(dataset: str, table: str) -> list[dict[str, object]]:
    return sorted(open_dataset(dataset).table(table).to_pylist(), key=str)


@pytest.mark.parametrize("mishap", [Mishap.DIES, Mishap.HANGS, Mishap.STUCK])
def test_b080_one_reject_and_everything_else_is_done(tmp_path: Path, mishap: Mishap) -> None:
    shard = write_shard(tmp_path / "a.tar", KNOWN)
    limits = EngineConfig(hang_seconds=0.2, request_timeout_seconds=0.5)
    if mishap is Mishap.STUCK:
        limits = EngineConfig(hang_seconds=20, request_timeout_seconds=0.5)
    config = job(tmp_path, shard, engine=limits, limits=LimitsConfig(max_reject_share=0.5))
    outcome = run_job(config, engine_factory=poisoned(mishap))
    assert outcome.exit_code == 0
    (reject,) = rows(config.output.dataset, "rejects")
    expected = "request_timeout" if mishap is Mishap.STUCK else "engine_killer"
    assert (reject["stage"], reject["reason"]) == ("infer", expected)
    assert POISON in str(reject["instruction"])
    assert outcome.report.figures.counts.samples == 14


def test_a_job_whose_engine_stays_dead_keeps_what_is_committed_and_goes_on_later(
    tmp_path: Path,
) -> None:
    shard = write_shard(tmp_path / "a.tar", KNOWN)
    limits = LimitsConfig(max_reject_share=0.5)
    config = job(tmp_path, shard, engine=EngineConfig(max_rebuilds=1), limits=limits)
    with pytest.raises(EngineError, match="run it again to go on"):
        run_job(config, engine_factory=poisoned())
    for _ in range(4):  # each run halves what the one before suspected, and convicts in the end
        try:
            outcome = run_job(config, engine_factory=poisoned())
        except EngineError:
            continue
        break
    assert [r["reason"] for r in rows(config.output.dataset, "rejects")] == ["engine_killer"]
    assert outcome.report.figures.counts.samples == 14
    whole = job(tmp_path / "whole", shard, engine=EngineConfig(), limits=limits)
    (tmp_path / "whole").mkdir()
    run_job(whole, engine_factory=poisoned())
    for table in ("annotations", "screens", "rejects"):
        assert rows(config.output.dataset, table) == rows(whole.output.dataset, table)


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "max_model_len"),
        (
            (
                "ValueError: Free memory on device cuda:0 (10/80 GiB) on startup is "
                "less than desired "
                "GPU memory utilization (0.9, 72 GiB)."
            ),
            "gpu_memory_utilization asks for: lower it",
        ),
        ("ValueError: No available memory for the cache blocks.", "raise model.engine.gpu_memory"),
        (
            (
                "ValueError: To serve at least one request with the models's max seq "
                "len (262144), 36 "
                "GiB KV cache is needed, which is larger than the available KV cache memory (2 GiB)"
            ),
            "kv_cache_memory_bytes",
        ),
        (
            (
                "RuntimeError: [enforce fail at alloc_cpu.cpp:118] "
                "DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 64424509440 bytes."
            ),
            "main memory",
        ),
        ("MemoryError: ", "main memory"),
        (
            (
                "RuntimeError: Engine core initialization failed. See root cause "
                "above. Failed core "
                "proc(s): {'EngineCore': -9}"
            ),
            "the system killed it",
        ),
        (
            (
                "RuntimeError: Engine core initialization failed. See root cause "
                "above. Failed core "
                "proc(s): {}"
            ),
            "in the lines above",
        ),
    ],
)
def test_too_little_memory_names_the_setting(said: str, setting: str) -> None:
    assert setting in (memory_advice(said) or "")


def test_other_failures_are_not_called_memory() -> None:
    assert memory_advice("ValueError: dtype int3 is unknown") is None
