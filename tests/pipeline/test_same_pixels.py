"""The same pixels in files of other bytes: asked once where nothing is drawn, each its own rows."""

import io
from pathlib import Path

import pytest
from job_fixtures import job, oracle, png, shots, sidecar, write_tar
from PIL import Image

from pipeline.bench.systems import job_round
from pipeline.config import SamplingConfig
from pipeline.dataset import open_dataset
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency


def saved_anew(data: bytes) -> bytes:
    file = io.BytesIO()
    Image.open(io.BytesIO(data)).save(file, "PNG", compress_level=1)
    return file.getvalue()


@pytest.mark.parametrize(("k", "asked"), [(1, 3), (3, 6)])
def test_a_picture_saved_anew_is_asked_again_only_if_answers_are_drawn(
    tmp_path: Path, k: int, asked: int
) -> None:
    (shot,) = shots(1)
    first, second = png(shot), saved_anew(png(shot))
    assert first != second
    shard = write_tar(
        tmp_path / "a.tar",
        {"a.png": first, "a.json": sidecar(shot), "b.png": second, "b.json": sidecar(shot)},
    )
    engine = ScriptedEngine(oracle([shot]), ScriptedLatency(hold=1), 8)
    config = job(tmp_path, shard, sampling=SamplingConfig(k=k))
    job_round(engine, config)
    assert len(engine.submitted) == asked
    dataset = open_dataset(str(tmp_path / "dataset"))
    rows = dataset.table("annotations").to_pylist()
    assert len({row["sample_id"] for row in rows}) == 6
    boxes: dict[str, list[object]] = {}
    for row in rows:
        boxes.setdefault(row["instruction"], []).append((row["status"], row["x1"], row["y2"]))
    assert all(len(found) == 2 and found[0] == found[1] for found in boxes.values())
    shared = sum(record.worker.answers_shared for record in dataset.commits())
    assert shared == 6 - asked
