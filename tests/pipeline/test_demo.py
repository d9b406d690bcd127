import io
import json
import tarfile
from pathlib import Path

import duckdb
import polars as pl
import pytest
from job_fixtures import Oracle, scripted
from PIL import Image

from pipeline.cli.app import main
from pipeline.config import load_config
from pipeline.dataset import open_dataset
from pipeline.demo.demo import demo_config, drawn_dir, screens_dir, write_job_file
from pipeline.demo.drawing import SPLITS, drawn_shard
from pipeline.plan import make_plan
from pipeline.run import RunOutcome, run_job

APPS = {"djangoadmin", "jupyterlab", "oscar", "wagtail"}
TARS = sorted(screens_dir().glob("*.tar"))


def sidecars() -> list[dict]:
    found = []
    for path in TARS:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.endswith(".json"):
                    file = archive.extractfile(member)
                    assert file is not None
                    found.append(json.load(file))
    return found


def test_the_bundled_screens_are_small_free_and_different() -> None:
    known = sidecars()
    assert sum(path.stat().st_size for path in TARS) < 1_500_000
    assert len(known) == 12
    assert {screen["app"] for screen in known} == APPS
    assert {screen["licence"] for screen in known} == {"BSD-3-Clause"}
    assert {screen["color_scheme"] for screen in known} == {"light", "dark"}
    assert any(screen["mobile"] for screen in known)
    assert len({tuple(screen["viewport_css"]) for screen in known}) >= 4
    assert any(query["target"] is None for screen in known for query in screen["queries"])


def test_the_notice_names_every_screen_and_the_terms() -> None:
    notice = (screens_dir() / "NOTICE.md").read_text(encoding="utf-8")
    for screen in sidecars():
        app, number = screen["screen"].split("-")
        assert app in notice
        assert f"-{number}" in notice
        assert screen["app_version"].split()[-1] in notice
    assert "Redistributions in binary form must reproduce" in notice


@pytest.mark.parametrize("path", TARS, ids=lambda path: path.name)
def test_the_tars_say_nothing_of_the_machine_that_made_them(path: Path) -> None:
    with tarfile.open(path) as archive:
        for member in archive:
            assert (member.mtime, member.uid, member.gid) == (0, 0, 0)
            assert (member.uname, member.gname, member.mode) == ("", "", 0o644)


def test_the_pictures_are_the_size_their_sidecars_say() -> None:
    sizes = {screen["screen"]: tuple(screen["image_size"]) for screen in sidecars()}
    for path in TARS:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.endswith(".png"):
                    file = archive.extractfile(member)
                    assert file is not None
                    with Image.open(io.BytesIO(file.read())) as image:
                        assert image.size == sizes[member.name.removesuffix(".png")]


def test_the_job_file_says_the_same_as_the_demo(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert load_config(write_job_file(folder)) == demo_config(folder)


def members(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in files.items() if file is not None}


def pixels(png: bytes) -> tuple[tuple[int, int], bytes]:
    with Image.open(io.BytesIO(png)) as image:
        return image.size, image.convert("RGB").tobytes()


@pytest.mark.parametrize("name", SPLITS)
def test_the_drawn_shards_are_what_the_code_draws(name: str) -> None:
    bundled = members((drawn_dir() / f"{name}.tar").read_bytes())
    drawn = members(drawn_shard(name))
    assert bundled.keys() == drawn.keys()
    for member, data in drawn.items():
        if member.endswith(".png"):
            assert pixels(bundled[member]) == pixels(data)
        else:
            assert json.loads(bundled[member]) == json.loads(data)


def run_scripted(folder: Path) -> RunOutcome:
    """The demo without its model; what answers instead knows none of the probe's screens."""
    config = demo_config(folder)
    unasked = config.model.model_copy(update={"probe": "off"})
    return run_job(
        config.model_copy(update={"model": unasked}), engine_factory=scripted(Oracle({}))
    )


def test_the_demo_covers_all_screens_in_several_units(tmp_path: Path) -> None:
    plan = make_plan(demo_config(tmp_path))
    assert (plan.members, len(plan.units), plan.problems) == (36, 10, ())


def test_a_demo_that_is_done_says_that_nothing_is_recomputed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "demo"
    run_scripted(folder)
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--dir", str(folder)])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert "1. Screens: 36 in 4 WebDataset tars" in out
    assert "lost on real pages" in out
    assert "Nothing to do: 10 units already committed, none recomputed." in out
    for command in ("duckdb.sql", f"pantalla show {folder}", "pantalla studio", "pantalla push"):
        assert command in out


def test_the_dataset_opens_in_duckdb_and_polars_with_the_counts_of_the_summary(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo"
    counts = run_scripted(folder).report.figures.counts
    parts = f"{folder}/annotations/*.parquet"
    query = f"select count(distinct sample_id) from '{parts}'"
    assert duckdb.sql(query).fetchall() == [(counts.samples,)]
    assert pl.read_parquet(parts)["sample_id"].n_unique() == counts.samples
    assert pl.read_parquet(f"{folder}/screens/*.parquet").height == counts.screens
    assert open_dataset(str(folder)).describe().counts == counts
