import json
from functools import partial
from pathlib import Path

import pytest
from job_fixtures import Shot, job, oracle, png, scripted, shots, sidecar, write_shard, write_tar

from pipeline.config import DecisionConfig, LabelStudioConfig, SamplingConfig
from pipeline.dataset import open_dataset
from pipeline.report.stats import PushOutcome
from pipeline.run import run_job
from schemas.codes import RejectReason
from schemas.errors import (
    ConfigError,
    DatasetError,
    EngineError,
    InputError,
    LabelStudioError,
)
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine

VOLATILE = {"unit_id", "shard"}


def rows(dataset: str, table: str) -> list[dict[str, object]]:
    found = open_dataset(dataset).table(table).to_pylist()
    return sorted(found, key=str)


def test_every_screen_and_query_comes_out_right(tmp_path: Path) -> None:
    known = shots(5)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    outcome = run_job(config, engine_factory=scripted(oracle(known)))
    counts = outcome.report.figures.counts
    assert (outcome.exit_code, counts.screens, counts.samples) == (0, 5, 15)
    assert counts.statuses == {"absent": 5, "ok": 10}
    assert (counts.truth_judged, counts.truth_hits) == (15, 15)
    assert counts.routes.keys() <= {"accept", "audit"}
    for row in rows(config.output.dataset, "annotations"):
        assert row["frame"] == "original_px"
        if row["status"] == "ok":
            assert 0 <= row["x1"] < row["x2"] <= row["image_width"]
            assert 0 <= row["y1"] < row["y2"] <= row["image_height"]
        assert len(row["answers"]) == 3


def test_a_second_run_does_nothing_and_changes_nothing(tmp_path: Path) -> None:
    known = shots(3)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    run_job(config, engine_factory=scripted(oracle(known)))
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "dataset").rglob("*.parquet")}

    def forbidden() -> None:
        raise AssertionError("an engine was started for nothing")

    again = run_job(config, engine_factory=forbidden)
    assert (again.exit_code, again.report.figures.stats.units_done) == (0, 0)
    assert again.report.figures.stats.units_reused == 2
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "dataset").rglob("*.parquet")}


def test_a_run_that_died_goes_on_and_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    known = shots(7)
    shard = write_shard(tmp_path / "a.tar", known)
    broken, whole = job(tmp_path / "broken", shard), job(tmp_path / "whole", shard)
    for config in (broken, whole):
        Path(config.output.dataset).parent.mkdir()
    with pytest.raises(EngineError, match="died after 8"):
        run_job(broken, engine_factory=scripted(oracle(known), fail_after=8))
    assert len(open_dataset(broken.output.dataset).commits()) >= 1
    run_job(broken, engine_factory=scripted(oracle(known)))
    run_job(whole, engine_factory=scripted(oracle(known)))
    for table in ("annotations", "screens", "rejects"):
        assert rows(broken.output.dataset, table) == rows(whole.output.dataset, table)


def test_bad_members_become_rejects_and_their_neighbours_go_on(tmp_path: Path) -> None:
    first, second = shots(2)
    files = {
        f"{first.name}.png": png(first),
        f"{first.name}.json": sidecar(first),
        "cortada.png": png(Shot("cortada"))[:150],
        "nada.png": b"",
        "texto.png": b"esto no es una imagen",
        f"{second.name}.png": png(second),
        f"{second.name}.json": b"{roto",
    }
    config = job(tmp_path, write_tar(tmp_path / "a.tar", files))
    outcome = run_job(config, engine_factory=scripted(oracle([first, second])))
    counts = outcome.report.figures.counts
    assert (counts.members, counts.screens, counts.members_rejected) == (5, 2, 3)
    assert outcome.exit_code == 1
    assert "rejected" in outcome.reason
    by_member = {row["member"]: row for row in rows(config.output.dataset, "rejects")}
    assert by_member["cortada.png"]["reason"] == "image_truncated"
    assert by_member["nada.png"]["reason"] == "image_empty"
    assert by_member["texto.png"]["reason"] == "image_unsupported"
    assert by_member[f"{second.name}.png"]["reason"] == "sidecar_invalid"


def test_answers_that_cannot_be_read_are_reviewed_and_kept_raw(tmp_path: Path) -> None:
    known = shots(1)
    bad = next(iter(known[0].targets))
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    run_job(config, engine_factory=scripted(oracle(known, frozenset({bad}))))
    (row,) = [r for r in rows(config.output.dataset, "annotations") if r["instruction"] == bad]
    assert (row["status"], row["route"], row["x"]) == ("unparseable", "review", None)
    assert [answer["text"] for answer in row["answers"]] == ["no sé qué decir"] * 3
    assert row["truth_hit"] is False


def test_the_same_picture_twice_is_asked_once(tmp_path: Path) -> None:
    known = shots(3)
    first = write_shard(tmp_path / "a.tar", known)
    second = write_shard(tmp_path / "b.tar", known[1:])
    config = job(tmp_path, first, second)
    outcome = run_job(config, engine_factory=scripted(oracle(known)))
    ids = [row["sample_id"] for row in rows(config.output.dataset, "annotations")]
    assert len(ids) == len(set(ids)) == 9
    assert outcome.report.figures.counts.screens == 5
    assert outcome.report.figures.counts.rejects == {"sample_duplicate": 6}
    assert outcome.exit_code == 0


def test_other_settings_on_the_same_dataset_are_refused_by_name(tmp_path: Path) -> None:
    known = shots(1)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    run_job(config, engine_factory=scripted(oracle(known)))
    other = config.model_copy(
        update={"sampling": SamplingConfig(k=4), "decision": DecisionConfig(threshold=0.6)}
    )
    with pytest.raises(DatasetError) as caught:
        run_job(other, engine_factory=scripted(oracle(known)))
    assert "sampling.k: 3 in the dataset, 4 in this job" in str(caught.value)
    assert "decision.threshold: 0.7 in the dataset, 0.6 in this job" in str(caught.value)


def test_a_job_that_failed_before_its_first_unit_may_be_corrected(tmp_path: Path) -> None:
    known = shots(1)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    with pytest.raises(EngineError, match="died after 0"):
        run_job(config, engine_factory=scripted(oracle(known), fail_after=0))
    other = config.model_copy(update={"sampling": SamplingConfig(k=4)})
    assert run_job(other, engine_factory=scripted(oracle(known))).exit_code == 0


def test_beam_flags_that_do_not_exist_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(1)))
    with pytest.raises(ConfigError, match="--runnr"):
        run_job(config, ["--runnr=x"], engine_factory=scripted(oracle([])))
    assert not (tmp_path / "dataset").exists()


def test_new_shards_join_a_dataset_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    known = shots(2) + shots(2, "otra")
    first = write_shard(tmp_path / "a.tar", known[:2])
    config = job(tmp_path, first)
    run_job(config, engine_factory=scripted(oracle(known)))
    second = write_shard(tmp_path / "b.tar", known[2:])
    both = job(tmp_path, first, second)
    outcome = run_job(both, engine_factory=scripted(oracle(known)))
    assert (outcome.report.figures.stats.units_done, outcome.report.figures.counts.screens) == (
        1,
        4,
    )
    write_shard(first, known[:1])
    with pytest.raises(DatasetError, match=r"a\.tar"):
        run_job(both, engine_factory=scripted(oracle(known)))


def test_a_server_that_is_down_leaves_reviews_and_audits_pending(tmp_path: Path) -> None:
    known = shots(2)
    config = job(
        tmp_path,
        write_shard(tmp_path / "a.tar", known),
        decision=DecisionConfig(threshold=0.1, audit_share=1.0),
        label_studio=LabelStudioConfig(url="http://127.0.0.1:9"),
    )

    def down(*_: object) -> PushOutcome:
        raise LabelStudioError("the server was not reached")

    outcome = run_job(config, engine_factory=scripted(oracle(known)), push=down)
    assert outcome.report.figures.counts.routes == {"audit": 6}
    assert (outcome.exit_code, outcome.reason) == (1, "6 review rows are not on the server yet")


def test_a_pattern_that_matches_nothing_stops_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="entrda"):
        run_job(job(tmp_path, tmp_path / "entrda" / "*.tar"))


def test_leftovers_of_a_killed_run_are_not_read(tmp_path: Path) -> None:
    known = shots(2)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    run_job(config, engine_factory=scripted(oracle(known)))
    parts = tmp_path / "dataset" / "annotations"
    (part,) = parts.glob("*.parquet")
    (parts / "0000-leftover.parquet").write_bytes(part.read_bytes())
    assert len(rows(config.output.dataset, "annotations")) == 6


def lone_surrogate(request: EngineRequest) -> Answer:
    """Answers, or refuses, with text that no file can hold."""
    if "papelera" in request.prompt:
        reason = RejectReason.REQUEST_REFUSED
        return Answer(request.request_id, error_reason=reason, error_detail="mal \ud800")
    texts = (Completion("\ud83d Guardar", "stop", 3),) * request.n
    return Answer(request.request_id, texts)


def test_text_that_no_file_can_hold_costs_a_character(tmp_path: Path) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(1)))
    run_job(config, engine_factory=partial(ScriptedEngine, lone_surrogate))
    annotations = rows(config.output.dataset, "annotations")
    assert [row["answers"][0]["text"] for row in annotations] == ["\ufffd Guardar"] * 2
    (reject,) = rows(config.output.dataset, "rejects")
    assert reject["detail"] == "mal \ufffd"


def no_completions(request: EngineRequest) -> Answer:
    return Answer(request.request_id)


def test_an_answer_without_completions_is_a_reject_of_its_query(tmp_path: Path) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(1)))
    outcome = run_job(config, engine_factory=partial(ScriptedEngine, no_completions))
    assert outcome.report.figures.counts.rejects == {"engine_failed": 3}


def test_truth_of_a_queries_file_that_is_off_the_image_is_not_truth(tmp_path: Path) -> None:
    known = shots(1)
    lines = [
        {"member": known[0].name, "instruction": "Fuera", "bbox_px": [900, 900, 950, 950]},
        {"member": known[0].name, "instruction": "Al borde", "bbox_px": [40, 40, 9000, 70]},
    ]
    queries = tmp_path / "consultas.jsonl"
    queries.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    config = config.model_copy(
        update={"input": config.input.model_copy(update={"queries": str(queries)})}
    )
    run_job(config, engine_factory=scripted(oracle(known)))
    truth = {r["instruction"]: r["truth"] for r in rows(config.output.dataset, "annotations")}
    assert truth["Fuera"] is None
    assert [box["x2"] for box in truth["Al borde"]["boxes"]] == [320.0]
    (screen,) = rows(config.output.dataset, "screens")
    assert "truth_dropped" in screen["flags"]
