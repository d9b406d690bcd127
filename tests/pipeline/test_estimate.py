"""What `pantalla plan` says of megapixels, tokens, time and money, before anything runs."""

import io
import tarfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_fixtures import Shot, job, oracle, png, scripted, shots, sidecar, write_shard, write_tar
from PIL import Image
from s3_server import S3Server

from pipeline import estimate_looks
from pipeline.config import CostConfig, InputConfig
from pipeline.dataset import open_dataset
from pipeline.estimate import Estimate, estimate
from pipeline.estimate_looks import Look, Looks, look_at
from pipeline.estimate_text import print_estimate
from pipeline.plan import make_plan
from pipeline.run import run_job
from schemas.codes import RejectReason
from schemas.geometry import Size
from transforms.profiles.load import load_profile
from transforms.resize.show import image_tokens, seen_size
from transforms.shards.folder_sidecars import FolderSidecars

KNOWN = shots(5)
PIXELS = sum(shot.size[0] * shot.size[1] for shot in KNOWN) / 1e6


def shown_tokens(size: tuple[int, int]) -> int:
    rule = load_profile("nano").resize
    assert rule is not None
    return image_tokens(seen_size(Size(*size), rule), rule) or 0


def text_of(found: Estimate, capsys: pytest.CaptureFixture[str]) -> str:
    print_estimate(found)
    return capsys.readouterr().out


def test_every_screen_of_a_small_job_is_counted_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = estimate(job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN)))
    assert (found.screens, found.looked_at) == (5, 5)
    assert found.megapixels == pytest.approx(PIXELS)
    assert (found.queries, found.answers) == (15, 45)
    images = sum(3 * shown_tokens(shot.size) for shot in KNOWN)
    assert found.tokens_in is not None
    assert images < found.tokens_in < images + 15 * 400
    task = next(iter(load_profile("nano").tasks.values()))
    assert found.tokens_out_limit == 45 * task.max_tokens
    assert found.tokens_out is None
    text = text_of(found, capsys)
    assert "Pixels       0.4 megapixels\n" in text
    assert "45 answers" in text and "about 45" not in text


def test_what_is_left_is_counted_screen_by_screen(tmp_path: Path) -> None:
    """The unit that is left is unlike those that are done."""
    many = [
        Shot(f"z{i}", (640, 480), {f"Pulsá {n} de z{i}": None for n in range(7)}) for i in (1, 2)
    ]
    first = write_shard(tmp_path / "a.tar", KNOWN[:2])
    run_job(job(tmp_path, first), engine_factory=scripted(oracle(KNOWN)))
    both = job(tmp_path, first, write_shard(tmp_path / "b.tar", many))
    found = estimate(both)
    assert (found.screens, found.screens_left) == (4, 2)
    assert (found.queries, found.answers) == (6 + 14, 14 * 3)
    assert found.tokens_out is not None
    assert found.tokens_out == 14 * 3 * 9  # the scripted engine says 9 tokens each


def test_a_large_job_is_extrapolated_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimate_looks, "MAX_LOOKS", 10)
    same = [Shot(f"p{i:02d}", (200, 100), {f"Pulsá {i}": None}) for i in range(40)]
    found = estimate(job(tmp_path, write_shard(tmp_path / "a.tar", same)))
    assert 10 <= found.looked_at <= 11
    assert found.megapixels == pytest.approx(40 * 0.02)
    assert (found.queries, found.answers) == (40, 120)
    assert "about 0.8 megapixels, from 10 screens" in text_of(found, capsys)


def test_compressed_shards_and_tables_are_looked_into_at_their_start(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for shot in KNOWN:
            for name, data in (
                (f"{shot.name}.png", png(shot)),
                (f"{shot.name}.json", sidecar(shot)),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    pq.write_table(pa.table({"image": [png(shot) for shot in KNOWN]}), tmp_path / "b.parquet")
    found = estimate(job(tmp_path, tmp_path / "a.tar.gz", tmp_path / "b.parquet"))
    assert 0 < found.looked_at < found.screens == 10
    assert found.megapixels is not None
    assert found.queries >= 10


def test_a_table_beside_the_images_is_gone_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    for shot in KNOWN:
        (folder / f"{shot.name}.png").write_bytes(png(shot))
    names = [f"{shot.name}.png" for shot in KNOWN]
    asked = [[{"instruction": f"Abrí {i}"}] * i for i in range(1, 6)]
    table = pa.table({"file_name": names, "queries": asked})
    pq.write_table(table, folder / "metadata.parquet")
    config = job(tmp_path, tmp_path)
    source = InputConfig(shards=(f"{folder}/",), unit_screens=2)
    config = config.model_copy(update={"input": source})
    opened = []
    read = pq.ParquetFile

    def counted(file: object) -> pq.ParquetFile:
        opened.append(file)
        return read(file)

    monkeypatch.setattr(FolderSidecars._parquet_rows.__globals__["pq"], "ParquetFile", counted)
    units = make_plan(config).units
    opened.clear()
    looks = look_at(config, units, frozenset())
    assert [look.grounding for look in looks.seen] == [1, 2, 3, 4, 5]
    assert len(opened) == 1


def test_a_header_beyond_the_first_bytes_and_a_broken_file_are_no_trouble(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x9286] = b"x" * 60_000
    icc = b"\0" * 60_000
    Image.new("RGB", (400, 300)).save(buffer, "JPEG", exif=exif, icc_profile=icc)
    files = {"larga.jpg": buffer.getvalue(), "rota.png": b"\x89PNG no", "vacia.png": b""}
    found = estimate(job(tmp_path, write_tar(tmp_path / "a.tar", files)))
    assert found.looked_at == 3
    assert found.megapixels == pytest.approx(0.12)
    assert found.refused == {"image_empty": 1, "image_unsupported": 1}


def test_what_will_be_rejected_costs_nothing_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan and the run that follows it tell the same rejects, and the price is of the rest."""
    bad = {
        "ancha.png": png(Shot("ancha", (900, 900))),
        "larga.png": png(Shot("larga", (4000, 10))),
        "punto.png": png(Shot("punto", (2, 2))),
        "pesada.png": png(Shot("pesada")) + bytes(100_000),
        "rota.png": png(Shot("rota"))[:30],
    }
    asked = {f"{name[:-4]}.json": sidecar(KNOWN[0]) for name in bad}
    good = {f"{shot.name}.png": png(shot) for shot in KNOWN}
    good |= {f"{shot.name}.json": sidecar(shot) for shot in KNOWN}
    config = job(tmp_path, write_tar(tmp_path / "a.tar", good))
    limited = config.input.model_copy(update={"max_pixels": 500_000, "max_bytes": 100_000})
    alone = config.model_copy(update={"input": limited, "cost": CostConfig(tokens_per_second=9.0)})
    cheap = estimate(alone)
    write_tar(tmp_path / "a.tar", bad | asked | good)
    found = estimate(alone)
    assert (found.screens, found.looked_at) == (10, 10)
    assert found.refused == {
        "image_too_large": 2,
        "image_too_narrow": 1,
        "image_too_small": 1,
        "image_truncated": 1,
    }
    assert found.megapixels == pytest.approx(PIXELS)
    assert (found.queries, found.answers) == (cheap.queries, cheap.answers) == (15, 45)
    assert found.tokens_in == cheap.tokens_in
    assert found.tokens_out_limit == cheap.tokens_out_limit
    assert found.seconds == pytest.approx(cheap.seconds)
    assert "2 x image_too_large, by their headers" in text_of(found, capsys)
    run_job(alone, engine_factory=scripted(oracle(KNOWN)))
    rejects = open_dataset(alone.output.dataset).table("rejects")["reason"].to_pylist()
    assert Counter(rejects) == found.refused


def test_rejects_in_a_compressed_shard_are_extrapolated(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for number in range(40):
            data = png(Shot("p", (900, 900) if number % 2 else (200, 100)))
            info = tarfile.TarInfo(f"{number:02d}.png")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    config = job(tmp_path, tmp_path / "a.tar.gz")
    source = config.input.model_copy(update={"max_side": 800, "unit_screens": 20})
    found = estimate(config.model_copy(update={"input": source}))
    assert found.refused == {"image_too_large": 20}
    assert found.megapixels == pytest.approx(20 * 0.02)


def test_a_profile_that_cannot_count_image_tokens_says_so_beside_rejects(tmp_path: Path) -> None:
    """Rejects cost nothing, but what the others cost stays unknown."""
    look = Look(Size(100, 100), 1, 0, None, is_left=True)
    refused = Look.refused(RejectReason.IMAGE_EMPTY, is_left=True)
    looks = Looks((look, refused))
    assert looks.mean(lambda look: look.image_tokens) is None
    assert looks.mean(lambda look: look.queries) == 0.5
    assert Looks((refused,)).mean(lambda look: look.image_tokens) == 0.0


def test_a_first_run_has_a_price_at_a_configured_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    priced = config.model_copy(
        update={"cost": CostConfig(machine_hour=3.6, tokens_per_second=1000.0, currency="EUR")}
    )
    found = estimate(priced)
    assert found.tokens_in is not None
    assert found.seconds == pytest.approx((found.tokens_in + found.tokens_out_limit) / 1000)
    assert found.cost == pytest.approx(found.seconds / 3600 * 3.6)
    assert "at cost.tokens_per_second" in text_of(found, capsys)


@pytest.mark.s3
def test_a_prefix_of_more_than_a_page_of_keys_is_planned(tmp_path: Path, s3: S3Server) -> None:
    data = png(KNOWN[0])
    s3.put("plan", {f"c/{i:04d} ñ+.png": data for i in range(1003)} | {"c/": b""})
    config = job(tmp_path, tmp_path)
    source = InputConfig(shards=("s3://plan/c/",), s3_endpoint=s3.endpoint)
    found = estimate(config.model_copy(update={"input": source}))
    assert (found.screens, found.looked_at) == (1003, 1000)
    assert found.megapixels == pytest.approx(1003 * 320 * 240 / 1e6)
    assert found.problems == {}
