"""A sweep keeps exactly N requests in the engine, and its figures are those of that time."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from pipeline.bench.closed_loop import Chain, ClosedLoop, Finished, UnansweredError, Window
from pipeline.bench.levels import Level, Seen, level_of, percentiles
from pipeline.bench.peaks import MemoryPeaks, device_meter
from pipeline.bench.sweep import Sweep, counted_requests, parse_levels
from pipeline.bench.sweep_plot import check_files, plot_sweep
from pipeline.bench.sweep_text import sweep_lines
from pipeline.bench.workloads import AGENTS, WORKLOADS, Workload
from schemas.codes import RejectReason
from schemas.errors import ConfigError
from schemas.profile import Sampling
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

ONE = WORKLOADS[0]
PIXEL = Image.new("RGB", (1, 1))


def request(name: str) -> EngineRequest:
    return EngineRequest(name, PIXEL, name, "¿?", None, 1, Sampling(), 8, 7, None, "{}")


def script(asked: EngineRequest) -> Answer:
    return Answer(asked.request_id, (Completion("sí", "stop", 20),), 80, 40)


class TickingEngine(ScriptedEngine):
    """Each `collect` takes one second; it remembers how many requests it held at each."""

    def __init__(self, latency: ScriptedLatency, submit_seconds: float = 0.0) -> None:
        super().__init__(script, latency, max_in_flight=1)
        self._submit_seconds = submit_seconds
        self.time = 0.0
        self.held: list[int] = []
        self.log: list[str] = []
        self._held = 0

    def submit(self, request: EngineRequest) -> None:
        super().submit(request)
        self._held += 1
        self.time += self._submit_seconds
        self.log.append(f"asked {request.request_id}")

    def collect(self) -> list[Answer]:
        self.held.append(self._held)
        self.time += 1.0
        answers = super().collect()
        self._held -= len(answers)
        self.log += [f"answered {answer.request_id}" for answer in answers]
        return answers


def singles(count: int) -> Iterator[Chain]:
    return ((request(f"r{number}"),) for number in range(count))


@pytest.mark.parametrize("in_flight", [1, 3, 8])
@pytest.mark.parametrize("per_collect", [1, 2, 5])
def test_exactly_n_requests_are_in_the_engine_until_the_window_ends(
    in_flight: int, per_collect: int
) -> None:
    engine = TickingEngine(ScriptedLatency(hold=1, per_collect=per_collect))
    loop = ClosedLoop(engine, singles(200), in_flight, now=lambda: engine.time)
    window = loop.run(ramp=in_flight, counted=4 * in_flight)
    steady = engine.held[: engine.held.index(max(engine.held)) + 1]
    drained = next((i for i, held in enumerate(engine.held) if held < in_flight), len(engine.held))
    assert set(engine.held[:drained]) == {in_flight}
    assert steady == [in_flight]  # from the first step on
    assert len(window.finished) >= 4 * in_flight
    # All that was asked in the window came before the drain, and the drain leaves nothing behind.
    assert len(engine.submitted) == len(loop.finished)
    assert drained >= window.seconds


def test_ramp_and_drain_do_not_count() -> None:
    engine = TickingEngine(ScriptedLatency(per_collect=4, shuffle_seed=None))
    loop = ClosedLoop(engine, singles(100), 4, now=lambda: engine.time)
    window = loop.run(ramp=8, counted=16)
    level = level_of(window, Seen(4, 30, 0, 0, None), None)
    assert (window.seconds, level.requests, level.requests_per_second) == (4.0, 16, 4.0)
    assert (level.tokens_per_second, level.output_tokens_per_second) == (400.0, 80.0)
    assert level.cached == 0.5
    assert level.latency == (1.0, 1.0, 1.0)
    # Two seconds of ramp, four that count, one of drain: seven rounds of four.
    assert (window.whole_seconds, window.whole_tokens) == (7.0, 7 * 4 * 100)


def test_time_inside_submit_is_part_of_the_latency_and_told() -> None:
    engine = TickingEngine(ScriptedLatency(per_collect=2, shuffle_seed=None), submit_seconds=0.25)
    loop = ClosedLoop(engine, singles(100), 2, now=lambda: engine.time)
    found = level_of(loop.run(ramp=2, counted=8), Seen(2, 30, 0, 0, None), None)
    assert found.seconds == 6.0  # four rounds: one second each and two submissions
    assert found.submitting == pytest.approx(2.0 / 6.0)
    assert max(found.latency) == 1.5


def test_a_step_of_an_agent_follows_the_answer_to_the_one_before() -> None:
    engine = TickingEngine(ScriptedLatency(per_collect=2))
    chains = [tuple(request(f"a{agent}-{step}") for step in range(3)) for agent in range(20)]
    ClosedLoop(engine, chains, 4, now=lambda: engine.time).run(ramp=4, counted=24)
    assert set(engine.held[:-2]) == {4}
    place = {line: number for number, line in enumerate(engine.log)}
    followed = [
        (f"answered a{agent}-{step}", f"asked a{agent}-{step + 1}")
        for agent in range(20)
        for step in range(2)
        if f"asked a{agent}-{step + 1}" in place
    ]
    assert len(followed) > 10
    assert all(place[before] < place[after] for before, after in followed)


def test_a_refusal_and_too_few_requests_stop_the_measurement() -> None:
    def refusing(asked: EngineRequest) -> Answer:
        return Answer(
            asked.request_id, error_reason=RejectReason.PROMPT_TOO_LONG, error_detail="4097 tokens"
        )

    with pytest.raises(UnansweredError, match=r"prompt_too_long.*4097 tokens"):
        ClosedLoop(ScriptedEngine(refusing), singles(9), 2).run(2, 4)
    with pytest.raises(UnansweredError, match="ran out with 4"):
        ClosedLoop(ScriptedEngine(script), singles(9), 4).run(4, 16)


def test_percentiles_and_costs_are_those_of_the_textbook() -> None:
    assert percentiles([float(n) for n in range(101)], (50, 95, 99)) == (50.0, 95.0, 99.0)
    assert percentiles([1.0, 2.0], (50.0,)) == (1.5,)
    done = tuple(Finished(float(n), n / 10, 49_900, 0, 100) for n in range(1, 11))
    window = Window(2, 1000.0, 20.0, 600.0, done, 2000.0, 600_000)
    level = level_of(window, Seen(0, 0, 0, 0, None), price_per_hour=3.6)
    # 1000 s at 3.6 an hour are 1.0, for 500,000 tokens and 10 samples.
    assert level.cost_per_million == pytest.approx(2.0)
    assert level.cost_per_thousand == pytest.approx(100.0)
    assert level.first_token == pytest.approx((0.55, 0.955))
    assert (level.waited, level.whole_tokens_per_second) == (0.02, 300.0)


def test_levels_are_whole_rounds() -> None:
    assert [counted_requests(n, None) for n in (1, 4, 8, 100)] == [32, 32, 32, 400]
    assert [counted_requests(n, 10) for n in (1, 4, 100)] == [10, 12, 100]
    assert parse_levels("1, 2,100") == (1, 2, 100)
    assert parse_levels("8,1,8") == (8, 1)
    for wrong in ("", "0", "1,-2", "viele", "1,1000000000", "9" * 5000):
        with pytest.raises(ConfigError, match="--in-flight"):
            parse_levels(wrong)


def level(in_flight: int, **changes: object) -> Level:
    done = (Finished(2.0, None, 90, 45, 10),) * in_flight
    seen = Seen(min(in_flight, 64), 30, 0, 2**30, None)
    found = level_of(Window(in_flight, 2.0, 0.0, 0.0, done, 4.0, 100), seen, None)
    return dataclasses.replace(found, **changes)


def swept(*levels: Level, workload: Workload = ONE) -> Sweep:
    return Sweep(workload, levels, 64, "", None, "USD")


def test_the_table_says_what_it_does_not_know_and_what_does_not_fit() -> None:
    text = "\n".join(sweep_lines(swept(level(2), level(128))))
    rows = [line.split() for line in text.splitlines()[1:3]]
    assert rows[0][:6] == ["2", "2", "2", "100", "10", "1.00"]
    assert rows[1][:2] == ["128*", "64"]
    assert rows[0][-4:] == ["GiB", "-", "-", "-"]
    assert "--set model.engine.max_num_seqs=128" in text
    assert "no NVIDIA device" in text
    assert "--price-per-hour" in text
    assert "Holotron" not in text
    assert "max_num_batched_tokens" not in text  # as many ran as may
    held = level(32, seen=Seen(4, 30, 0, 2**30, None))
    assert "At 32 in flight fewer ran" in "\n".join(sweep_lines(swept(level(2), held)))
    once = level(32, seen=Seen(4, 1, 0, 2**30, None))
    assert "fewer ran" not in "\n".join(sweep_lines(swept(once)))

    fits = "\n".join(sweep_lines(swept(level(64))))
    assert "*" not in fits
    votes = Workload("votes", 1, k=8)
    assert "max_num_seqs=128" in "\n".join(sweep_lines(swept(level(16), workload=votes)))
    assert "not the same" in "\n".join(sweep_lines(swept(level(2), workload=AGENTS)))

    seen = Seen(2, 30, 7, 2**30, 3 * 2**30)
    busy = level(2, seen=seen, cost_per_million=0.123456, cost_per_thousand=2.0)
    busy = dataclasses.replace(busy, waited=0.2, submitting=0.6)
    text = "\n".join(sweep_lines(dataclasses.replace(swept(busy), price_per_hour=3.0)))
    assert "3.0 GiB" in text
    assert "0.123" in text
    assert "7 at 2" in text
    assert "20.0 %" in text
    assert "60.0 %" in text


def test_the_plot_has_all_curves(tmp_path: Path) -> None:
    levels = [level(n, first_token=(0.1, 0.2)) for n in (1, 2, 128)]
    for suffix, magic in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        place = tmp_path / f"sweep{suffix}"
        check_files(tmp_path / "sweep.json", place)
        plot_sweep(swept(*levels), "nano", place)
        assert place.read_bytes().startswith(magic)
    drawn = (tmp_path / "sweep.svg").read_text()
    for name in ("tokens/s in and out", "latency p99", "first token p95", "64 run at once"):
        assert f"<!-- {name} -->" in drawn
    with pytest.raises(ConfigError, match=r"\.svg or \.png"):
        check_files(None, tmp_path / "sweep.pdf")
    with pytest.raises(ConfigError, match=r"--out .* no folder"):
        check_files(tmp_path / "none" / "sweep.json", None)
    with pytest.raises(ConfigError, match="is a folder"):
        check_files(tmp_path, None)
    with pytest.raises(ConfigError, match="name two files"):
        check_files(tmp_path / "a.svg", tmp_path / "a.svg")


def test_device_memory_is_the_drivers_word_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device_meter() is None
    used = {0: 5, "GPU-abc": 7}
    driver = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetHandleByUUID=lambda name: name,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=used[handle]),
        NVMLError=OSError,
    )
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-abc")
    meter = device_meter()
    assert meter is not None
    with MemoryPeaks(meter) as peaks:
        used[0] = 1000
    assert peaks.device == 1007
    assert peaks.host > 0
    monkeypatch.setattr(driver, "nvmlInit", lambda: (_ for _ in ()).throw(OSError("no driver")))
    assert device_meter() is None
