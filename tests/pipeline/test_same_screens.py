"""The same screenshots packed in every way give the same rows, but for where they were found.

The bundled screens are always tried; those of `../shared/screens` beside the checkout, or of the
folder that `PANTALLA_SCREENS` names, where they exist.
"""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from job_fixtures import job
from s3_server import S3Server

from pipeline.config import InputConfig, SamplingConfig
from pipeline.dataset import open_dataset
from pipeline.demo.demo import screens_dir
from pipeline.run import run_job
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

ROOT = Path(__file__).resolve().parents[2]
MORE = Path(os.environ.get("PANTALLA_SCREENS", ROOT.parent / "shared" / "screens"))
BUNDLED = sorted(screens_dir().glob("*.tar"))
SOURCE = {"unit_id", "shard", "shard_kind", "member", "byte_offset", "row"}
"""Columns that say where a screen was found; `duplicate_of` names such a place too."""

Files = list[tuple[str, bytes]]


def absent(request: EngineRequest) -> Answer:
    return Answer(request.request_id, (Completion("[]", "stop", 2),) * request.n, 50)


FACTORY = partial(ScriptedEngine, absent, ScriptedLatency(per_collect=16), 32)


def contents(tar: Path) -> Files:
    with tarfile.open(tar) as archive:
        return [(m.name, archive.extractfile(m).read()) for m in archive if m.isfile()]  # type: ignore[union-attr]


def as_tar(files: Files, tar_format: int = tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def sidecars_last(files: Files) -> Files:
    return sorted(files, key=lambda file: file[0].endswith(".json"))


def as_zip(files: Files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


def as_parquet(files: Files, *, lists: bool) -> bytes:
    data = dict(files)
    images = [name for name in data if not name.endswith(".json")]
    words = [data[name.rpartition(".")[0] + ".json"].decode() for name in images]
    cells = [{"bytes": data[name], "path": name} for name in images]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    column = pa.array([[c] for c in cells], pa.list_(kind)) if lists else pa.array(cells, kind)
    buffer = io.BytesIO()
    pq.write_table(pa.table({"image": column, "json": words}), buffer, row_group_size=5)
    return buffer.getvalue()


PACKED: dict[str, Callable[[Files], bytes]] = {
    "gnu.tar": as_tar,
    "pax.tar": partial(as_tar, tar_format=tarfile.PAX_FORMAT),
    "lejos.tar": lambda files: as_tar(sidecars_last(files)),
    "x.tar.gz": lambda files: gzip.compress(as_tar(sidecars_last(files)), 1),
    "x.tar.zst": lambda files: zstandard.compress(as_tar(files)),
    "x.zip": as_zip,
    "x.parquet": partial(as_parquet, lists=False),
    "listas.parquet": partial(as_parquet, lists=True),
}


def rows(dataset: str, endpoint: str | None = None) -> list[dict]:
    """Rows of `screens` without their source, and of `annotations` by what was asked."""
    table = open_dataset(dataset, endpoint).table("screens").to_pylist()
    kept = [{k: v for k, v in row.items() if k not in SOURCE} for row in table]
    for row in kept:
        row["duplicate_of"] = row.get("duplicate_of") is not None
    return sorted(kept, key=lambda row: row["screen_id"])


def run(folder: Path, shard: str, endpoint: str | None = None) -> list[dict]:
    config = job(folder, Path("x"), sampling=SamplingConfig(k=1)).model_copy(
        update={"input": InputConfig(shards=(shard,), s3_endpoint=endpoint, unit_screens=16)}
    )
    report = run_job(config, engine_factory=FACTORY).report
    assert report.figures.counts.members_rejected == 0
    return rows(config.output.dataset)


@pytest.mark.parametrize(
    "tar", [*BUNDLED[-1:], *sorted(MORE.glob("*.tar"))[:1]], ids=lambda tar: f"{tar.parent.name}"
)
def test_screens_packed_in_every_way_give_the_same_rows(tar: Path, tmp_path: Path) -> None:
    files = contents(tar)
    expected = run(tmp_path / "original", str(tar))
    assert len(expected) == sum(not name.endswith(".json") for name, _ in files)
    for name, data in files:
        path = tmp_path / "carpeta" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert run(tmp_path / "de-carpeta", f"{tmp_path}/carpeta") == expected
    for name, pack in PACKED.items():
        (tmp_path / name).write_bytes(pack(files))
        assert run(tmp_path / f"de-{name}", f"{tmp_path}/{name}") == expected, name


@pytest.mark.s3
def test_every_format_read_from_s3_gives_the_rows_it_gives_from_disk(
    tmp_path: Path, s3: S3Server
) -> None:
    files = contents(BUNDLED[0])[:10]
    objects = {name: pack(files) for name, pack in PACKED.items()}
    objects |= {f"carpeta/{name}": data for name, data in files}
    s3.put("formatos", objects)
    (tmp_path / "x.tar").write_bytes(as_tar(files))
    expected = run(tmp_path / "disco", f"{tmp_path}/x.tar")
    for name in [*PACKED, "carpeta/"]:
        folder = tmp_path / f"de-{name.strip('/')}"
        assert run(folder, f"s3://formatos/{name}", s3.endpoint) == expected, name
