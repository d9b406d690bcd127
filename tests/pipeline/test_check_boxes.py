"""A declaration of boxes that the data contradict stops the job before anything runs."""

import json
from pathlib import Path

import pytest
from image_bytes import encoded, noise
from job_fixtures import job, oracle, png, scripted, shots, write_tar

from pipeline.config import BoxesConfig, JobConfig
from pipeline.dataset import open_dataset
from pipeline.plan import make_plan
from pipeline.run import run_job
from schemas.errors import InputError

CORNERS = [[200, 150, 300, 200], [20, 30, 90, 60], [150, 100, 260, 140]]


def xywh(box: list[int]) -> list[int]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def shard(tmp_path: Path, boxes: list[list[list[float]]], **fields: object) -> Path:
    files: dict[str, bytes] = {}
    for i, stated in enumerate(boxes):
        queries = [{"instruction": f"Abra {i}-{j}", "bbox_px": b} for j, b in enumerate(stated)]
        files[f"p{i}.png"] = encoded(noise(320 + i, 240), "PNG")
        files[f"p{i}.json"] = json.dumps({"queries": queries, **fields}).encode()
    return write_tar(tmp_path / "a.tar", files)


def with_boxes(config: JobConfig, boxes: BoxesConfig) -> JobConfig:
    return config.model_copy(update={"input": config.input.model_copy(update={"boxes": boxes})})


def test_sizes_taken_for_corners_stop_the_job_with_the_likely_declaration(tmp_path: Path) -> None:
    sizes = [[xywh(box) for box in CORNERS]] * 3
    config = job(tmp_path, shard(tmp_path, sizes))
    with pytest.raises(InputError) as caught:
        run_job(config, engine_factory=scripted(oracle([])))
    said = str(caught.value)
    for part in ("a.tar", "p0.png", "[200.0, 150.0, 100.0, 50.0]", 'format = "xywh"'):
        assert part in said
    assert not (tmp_path / "dataset").exists()
    run_job(with_boxes(config, BoxesConfig(format="xywh")), engine_factory=scripted(oracle([])))
    truth = open_dataset(config.output.dataset).table("annotations")["truth"].to_pylist()
    assert [(t["boxes"][0]["x2"], t["boxes"][0]["y2"]) for t in truth[:3]] == [
        (300.0, 200.0),
        (90.0, 60.0),
        (260.0, 140.0),
    ]


def test_shares_taken_for_pixels_stop_the_job(tmp_path: Path) -> None:
    shares = [[[b[0] / 320, b[1] / 240, b[2] / 320, b[3] / 240] for b in CORNERS]] * 2
    with pytest.raises(InputError, match=r'format = "xyxy", frame = "unit"'):
        make_plan(job(tmp_path, shard(tmp_path, shares)))


def test_a_css_job_without_ratios_stops_and_says_what_is_missing(tmp_path: Path) -> None:
    config = job(tmp_path, shard(tmp_path, [CORNERS] * 2))
    with pytest.raises(InputError, match="device_pixel_ratio"):
        make_plan(with_boxes(config, BoxesConfig(frame="css")))


def test_one_screen_with_wrong_boxes_costs_itself_alone(tmp_path: Path) -> None:
    boxes = [CORNERS, [xywh(box) for box in CORNERS], CORNERS, CORNERS]
    config = job(tmp_path, shard(tmp_path, boxes))
    outcome = run_job(config, engine_factory=scripted(oracle([])))
    counts = outcome.report.figures.counts
    assert (counts.screens, counts.samples) == (4, 12)
    assert counts.rejects == {"sidecar_invalid": 1}
    flags = open_dataset(config.output.dataset).table("screens")["flags"].to_pylist()
    assert [("truth_contradicts" in entry) for entry in flags] == [False, True, False, False]


def test_good_boxes_and_no_boxes_are_no_reason_to_stop(tmp_path: Path) -> None:
    known = shots(3)
    files = {f"{shot.name}.png": png(shot) for shot in known}
    assert make_plan(job(tmp_path, write_tar(tmp_path / "b.tar", files))).members == 3
    assert make_plan(job(tmp_path, shard(tmp_path, [CORNERS] * 3))).members == 3


def test_a_shard_may_declare_its_boxes_itself(tmp_path: Path) -> None:
    folder = tmp_path / "capturas"
    folder.mkdir()
    for i in range(2):
        queries = [{"instruction": f"Abra {i}-{j}", "bbox": xywh(b)} for j, b in enumerate(CORNERS)]
        (folder / f"p{i}.png").write_bytes(encoded(noise(320 + i, 240), "PNG"))
        (folder / f"p{i}.json").write_text(json.dumps({"queries": queries}))
    config = job(tmp_path, folder)
    with pytest.raises(InputError, match="need a declared convention"):
        make_plan(config)
    (folder / "shard.toml").write_text('box_format = "xywh"\n')
    run_job(config, engine_factory=scripted(oracle([])))
    truth = open_dataset(config.output.dataset).table("annotations")["truth"].to_pylist()
    assert [t["boxes"][0]["x2"] for t in truth] == [300.0, 90.0, 260.0] * 2
    (folder / "shard.toml").write_text('box_format = "cxcywh"\n')
    with pytest.raises(InputError, match=r"shard\.toml.*xyxy, xywh"):
        make_plan(config)
