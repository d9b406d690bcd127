"""Every real screen and query comes through, and what is shown is in the right place.

The bundled shards are always read; `../shared/screens` beside the checkout, or the folder that
`PANTALLA_SCREENS` names, adds more where it exists.
"""

import json
import os
import tarfile
from functools import partial
from pathlib import Path

import duckdb
import polars as pl
import pytest
from job_fixtures import job
from PIL import Image

from pipeline.cli.app import main
from pipeline.config import SamplingConfig
from pipeline.dataset import open_dataset
from pipeline.demo.demo import screens_dir
from pipeline.run import run_job
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

ROOT = Path(__file__).resolve().parents[2]
MORE = Path(os.environ.get("PANTALLA_SCREENS", ROOT.parent / "shared" / "screens"))
TARS = sorted(screens_dir().glob("*.tar")) + sorted(MORE.glob("*.tar"))


def quarter(request: EngineRequest) -> Answer:
    """Always the box from a quarter to a half of the screen, in the 0-1000 frame."""
    text = '[{"bbox_2d":[250,250,500,500],"label":"button"}]'
    return Answer(request.request_id, (Completion(text, "stop", 20),) * request.n, 50)


FACTORY = partial(ScriptedEngine, quarter, ScriptedLatency(per_collect=16), 32)


def known(tar: Path) -> tuple[int, int]:
    """Screens and queries of a tar, counted without our code."""
    with tarfile.open(tar) as archive:
        names = archive.getnames()
        documents = [json.load(archive.extractfile(n)) for n in names if n.endswith(".json")]
    screens = sum(name.endswith(".png") for name in names)
    return screens, sum(len(document["queries"]) for document in documents)


@pytest.mark.parametrize("tar", TARS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_screen_and_query_has_its_rows(tar: Path, tmp_path: Path) -> None:
    screens, queries = known(tar)
    config = job(tmp_path, tar, sampling=SamplingConfig(k=1))
    counts = run_job(config, engine_factory=FACTORY).report.figures.counts
    assert (counts.screens, counts.members_rejected) == (screens, 0)
    assert counts.queries == queries
    assert counts.samples + counts.rejects.get("sample_duplicate", 0) == queries
    for row in open_dataset(config.output.dataset).table("annotations").to_pylist():
        width, height = row["image_width"], row["image_height"]
        corners = [row["x1"] / width, row["y1"] / height, row["x2"] / width, row["y2"] / height]
        assert corners == pytest.approx([0.25, 0.25, 0.5, 0.5])
        assert row["x"], row["y"] == pytest.approx([0.375 * width, 0.375 * height])
        for box in (row["truth"] or {"boxes": []})["boxes"]:
            assert 0 <= box["x1"] < box["x2"] <= width
            assert 0 <= box["y1"] < box["y2"] <= height


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    config = job(folder, *sorted(screens_dir().glob("*.tar")))
    run_job(config, engine_factory=FACTORY)
    return Path(config.output.dataset)


def test_duckdb_and_polars_read_what_the_summary_says(dataset: Path) -> None:
    report = json.loads((dataset / "report.json").read_text(encoding="utf-8"))
    parts = str(dataset / "annotations" / "*.parquet")
    (count,) = duckdb.sql(f"select count(distinct sample_id) from '{parts}'").fetchall()[0]
    frame = pl.read_parquet(parts)
    screens = pl.read_parquet(dataset / "screens" / "*.parquet")
    assert count == frame["sample_id"].n_unique() == report["counts"]["samples"] == 67
    assert len(screens) == report["counts"]["screens"] == 12
    joined = duckdb.sql(
        f"select count(*) from '{parts}' a join '{dataset}/screens/*.parquet' s using (screen_id)"
    ).fetchall()
    assert joined == [(67,)]


def test_show_draws_the_answer_where_it_is(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = open_dataset(str(dataset))
    sample = next(opened.samples())
    png = tmp_path / "muestra.png"
    with pytest.raises(SystemExit) as stopped:
        main(["show", str(dataset), sample.sample_id, "--png", str(png), "--no-truth"])
    assert stopped.value.code in (0, None)
    said = capsys.readouterr().out
    assert sample.instruction in said
    assert '[{"bbox_2d":[250,250,500,500],"label":"button"}]' in said
    before = opened.picture(opened.screen(sample.screen_id)).convert("RGB")
    with Image.open(png) as drawn:
        after = drawn.convert("RGB")
    width, height = before.size
    assert after.size == before.size
    for x, y in ((width // 4, height * 3 // 8), (width * 3 // 8, height // 4)):
        assert changed(before, after, x, y), f"no stroke near {x},{y}"
    for x, y in ((width // 8, height // 8), (width * 7 // 8, height * 7 // 8)):
        assert not changed(before, after, x, y), f"a stroke near {x},{y}"


def changed(before: Image.Image, after: Image.Image, x: int, y: int) -> bool:
    """Whether the picture differs within 4 px of a point."""
    area = (x - 4, y - 4, x + 5, y + 5)
    return before.crop(area).tobytes() != after.crop(area).tobytes()
