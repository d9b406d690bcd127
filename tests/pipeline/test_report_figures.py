import dataclasses
import json
from pathlib import Path

import pytest
from stored_fixtures import Ask, Stored, make_stored, stored_stats

from pipeline.config import CostConfig
from pipeline.report.accuracy import share
from pipeline.report.figures import RunFigures, make_figures
from pipeline.report.json_report import FIELDS, report_json
from pipeline.report.last_work import last_work
from pipeline.report.stats import PushOutcome, run_stats
from pipeline.report.summary import summary_text
from pipeline.report.words import byte_size, duration, money, percent
from schemas.caches import CacheCounts
from schemas.commits import CommitRecord, UnitCounts, WorkerStats
from schemas.errors import CountMismatchError

BOX = (10.0, 10.0, 50.0, 50.0)
SCREENS = (
    Stored(
        "uno",
        (
            Ask("Guardar", "accept", probability=0.95, boxes=(BOX,), truth=(BOX,), hit=True),
            Ask("Abrir", "accept", probability=0.85, truth=(BOX,), hit=False),
            Ask("Papelera", "review", "absent", probability=0.1, truth=(), hit=True),
        ),
        app="tienda",
    ),
    Stored("dos", (Ask("Cerrar", "audit", probability=1.0),), app=None),
    Stored("tres", rejects=(("sidecar_invalid", "no es JSON"),), app="tienda"),
)


@pytest.fixture
def figures(tmp_path: Path) -> RunFigures:
    dataset = make_stored(tmp_path, SCREENS)
    return make_figures(dataset, stored_stats(dataset), CostConfig(machine_hour=3.6), 0.8)


def test_counts_come_from_the_commit_records(figures: RunFigures) -> None:
    counts = figures.counts
    assert (counts.screens, counts.samples, counts.notices) == (3, 4, 1)
    assert counts.routes == {"accept": 2, "audit": 1, "review": 1}
    assert counts.statuses == {"absent": 1, "ok": 3}
    assert counts.rejects == {"sidecar_invalid": 1}
    assert figures.apps == {"": 1, "tienda": 2}
    assert figures.models == {"prueba": 4}


def test_grounding_accuracy_counts_only_what_has_truth(figures: RunFigures) -> None:
    accuracy = figures.accuracy
    assert (accuracy.grounding.judged, accuracy.grounding.hits) == (3, 2)
    assert {route: (s.judged, s.hits) for route, s in accuracy.by_route.items()} == {
        "accept": (2, 1),
        "review": (1, 1),
    }
    assert accuracy.localization.samples == 0
    assert accuracy.localization.f1 is None


def test_localization_is_matched_one_to_one_at_half_overlap(tmp_path: Path) -> None:
    found = ((0.0, 0.0, 10.0, 10.0), (0.0, 0.0, 10.0, 9.0), (100.0, 100.0, 120.0, 120.0))
    true = ((0.0, 0.0, 10.0, 10.0), (200.0, 0.0, 210.0, 10.0))
    ask = Ask("Todos los elementos", kind="localization", boxes=found, truth=true)
    blind = Ask("Todos los elementos", kind="localization", boxes=found)
    dataset = make_stored(tmp_path, [Stored("uno", (ask,)), Stored("dos", (blind,))])
    result = make_figures(dataset, stored_stats(dataset)).accuracy.localization
    assert dataclasses.astuple(result) == (1, 3, 2, 1)
    assert result.f1 == pytest.approx(2 * 1 / (3 + 2))


def test_an_answer_without_boxes_counts_as_found_nothing(tmp_path: Path) -> None:
    ask = Ask("Todos", status="unparseable", kind="localization", truth=(BOX,))
    dataset = make_stored(tmp_path, [Stored("uno", (ask,))])
    result = make_figures(dataset, stored_stats(dataset)).accuracy.localization
    assert (result.samples, result.found, result.true, result.f1) == (1, 0, 1, 0.0)


def test_the_interval_is_the_exact_one() -> None:
    # Clopper-Pearson for 0 of 10 is [0, 1 - 0.025^(1/10)].
    found = share(10, 0)
    assert (found.low, found.high) == (0.0, pytest.approx(1 - 0.025**0.1))
    assert share(0, 0).value is None


def test_probabilities_fall_into_their_bins(figures: RunFigures) -> None:
    assert sum(map(sum, figures.histogram.values())) == 4
    assert figures.histogram["audit"][-1] == 1, "1.0 belongs to the last bin"
    assert figures.histogram["review"][2] == 1
    assert (figures.histogram["accept"][17], figures.histogram["accept"][19]) == (1, 1)


def test_speeds_are_of_this_run_only(figures: RunFigures) -> None:
    # Two units of 2 s each with the engine busy, 10 s of wall time.
    assert figures.speeds.screens_per_second == pytest.approx(0.3)
    assert figures.speeds.output_tokens_per_second == pytest.approx(40 / 4)
    assert figures.speeds.total_tokens_per_second == pytest.approx(440 / 4)
    assert figures.speeds.engine_busy_share == pytest.approx(0.4)
    assert figures.speeds.engine_idle_share == pytest.approx(1 - 3 / 10)
    assert figures.speeds.cached_share == pytest.approx(100 / 400)


def test_what_an_engine_does_not_tell_of_its_caches_is_unknown(figures: RunFigures) -> None:
    told = dataclasses.replace(figures.stats, caches=CacheCounts(8, 6, 40, 4))
    assert (told.caches.processor_share, told.caches.encoder_share) == (0.75, 0.9)
    assert (told.caches + CacheCounts(8, 8, None, 2)).encoder_share is None
    assert figures.speeds.encoder_hit_share is None
    assert "prompt tokens 25.0 %, processed images unknown" in summary_text(figures)


def test_cost_needs_a_price_and_is_over_accepted_samples(
    figures: RunFigures, tmp_path: Path
) -> None:
    assert figures.cost is not None
    assert figures.cost.total == pytest.approx(0.01)
    assert figures.cost.per_accepted == pytest.approx(0.01 / 3)
    dataset = make_stored(tmp_path / "sin-precio", ())
    assert make_figures(dataset, stored_stats(dataset), CostConfig()).cost is None


def record(*, reused: bool = False, **worker: object) -> CommitRecord:
    counts = UnitCounts(
        members=2, screens=2, queries=3, samples=3, statuses={"ok": 3}, routes={"review": 3}
    )
    stats = WorkerStats(**worker)  # type: ignore[arg-type]  # named by each test
    return CommitRecord("u", 0, "s", "f", "1.0.0", (), counts, stats, reused)


def test_reused_units_cost_this_run_nothing() -> None:
    records = [
        record(reused=True, pid=1, engine_busy_seconds=100.0, peak_memory_bytes=10**12),
        record(pid=2, engine_busy_seconds=3.0, engine_start_seconds=4.0, peak_memory_bytes=5),
        record(pid=3, engine_busy_seconds=2.0, peak_memory_bytes=7),
    ]
    stats = run_stats(records, started="a", ended="b", wall_seconds=9.0, model="m")
    assert (stats.units_done, stats.units_reused, stats.workers) == (2, 1, 2)
    assert (stats.screens, stats.samples) == (4, 6)
    assert (stats.engine_busy_seconds, stats.engine_start_seconds) == (5.0, 4.0)
    assert stats.peak_memory_bytes == 7


def test_a_run_that_did_nothing_has_no_speed_but_remembers_the_last(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    first = make_figures(dataset, stored_stats(dataset))
    Path(dataset.uri, "report.json").write_text(report_json(first))
    reused = [dataclasses.replace(r, reused=True) for r in dataset.commits()]
    idle = run_stats(reused, started="a", ended="b", wall_seconds=1.0, model="m")
    again = make_figures(dataset, idle)
    assert again.speeds.screens_per_second is None
    assert again.last_work == first.last_work
    assert last_work(dataset) == first.last_work
    assert first.last_work is not None
    assert first.last_work.screens_per_second == pytest.approx(0.3)


def test_counts_that_do_not_add_up_are_never_reported(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    path = next((tmp_path / "dataset/_commits").iterdir())
    content = json.loads(path.read_text())
    content["counts"]["members"] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(CountMismatchError, match=content["unit_id"]):
        make_figures(dataset, stored_stats(make_stored(tmp_path / "otro", SCREENS)))


def leaves(value: object, prefix: str = "") -> set[str]:
    if not isinstance(value, dict) or not value:
        return {prefix}
    return {leaf for key, inner in value.items() for leaf in leaves(inner, f"{prefix}.{key}")}


def test_every_field_of_the_json_is_described_and_exists(figures: RunFigures) -> None:
    document = json.loads(report_json(figures))
    assert document.pop("fields") == FIELDS
    found = {leaf.lstrip(".") for leaf in leaves(document)}
    for leaf in found:
        assert any(leaf == name or leaf.startswith(f"{name}.") for name in FIELDS), leaf
    for name in FIELDS:
        assert any(leaf == name or leaf.startswith(f"{name}.") for leaf in found), name


def test_the_json_holds_the_same_figures(figures: RunFigures) -> None:
    document = json.loads(report_json(figures))
    assert document["counts"]["screens"] == 3
    assert document["counts"]["balanced"] is True
    assert document["accuracy"]["grounding"]["share"] == pytest.approx(2 / 3)
    assert document["probability"]["threshold"] == 0.8
    assert document["cost"]["currency"] == "USD"


def test_the_summary_says_everything_in_plain_text(figures: RunFigures) -> None:
    push = PushOutcome(project="http://127.0.0.1:8080/projects/1", tasks_new=1, pending=2)
    told = dataclasses.replace(figures, stats=dataclasses.replace(figures.stats, push=push))
    text = summary_text(told)
    for part in (
        "3   (3 members = 3 out + 0 rejected)",
        "4   (4 queries = 4 out + 0 rejected)",
        "accepted, drawn for audit",
        "sidecar invalid",
        "2 of 3 right: 66.7 %",
        "400 in, 40 out",
        "0.30 screens/s",
        "3.0 GiB at the peak",
        "0.0100 USD for this run",
        "1 new task, 0 there already: http://127.0.0.1:8080/projects/1",
        "2 review rows waiting",
    ):
        assert part in text
    assert "\x1b" not in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_the_summary_of_an_empty_dataset_is_a_summary(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, ())
    text = summary_text(make_figures(dataset, stored_stats(dataset)))
    assert "0   (0 members = 0 out + 0 rejected)" in text
    assert "nothing to compare with" in text


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (duration(4.25), "4.2 s"),
        (duration(59.6), "1 min 00 s"),
        (duration(185), "3 min 05 s"),
        (duration(7625), "2 h 07 min"),
        (byte_size(512), "512 B"),
        (byte_size(3 * 2**30), "3.0 GiB"),
        (percent(0.1234), "12.3 %"),
        (percent(None), "n/a"),
        (money(1234.5, "EUR"), "1,234.50 EUR"),
        (money(0.001272, "USD"), "0.00127 USD"),
        (money(0.0, "USD"), "0.00 USD"),
    ],
)
def test_numbers_read_well(told: str, text: str) -> None:
    assert told == text
