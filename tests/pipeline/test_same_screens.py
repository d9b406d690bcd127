"""The same screenshots packed in every way give the same rows, but for where they were found.

The bundled screens are always tried; those of `../shared/screens` beside the checkout, or of the
folder that `PANTALLA_SCREENS` names, where they exist: one shard of them, or all where
`PANTALLA_LONG` is set.
"""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from job_fixtures import job
from s3_server import S3Server

from pipeline.config import InputConfig
from pipeline.demo.demo import screens_dir
from pipeline.plan import make_plan
from pipeline.settings import worker_settings
from transforms.load import decode, read
from transforms.rows import screen_rows
from transforms.work import Decoded, JudgedUnit, Refused

ROOT = Path(__file__).resolve().parents[2]
MORE = Path(os.environ.get("PANTALLA_SCREENS", ROOT.parent / "shared" / "screens"))
LONG = bool(os.environ.get("PANTALLA_LONG"))
OTHERS = sorted(MORE.glob("*.tar"))
BUNDLED = sorted(screens_dir().glob("*.tar"))
TRIED = [*BUNDLED, *OTHERS] if LONG else [*BUNDLED[:1], *OTHERS[:1]]
SOURCE = {"unit_id", "shard", "shard_kind", "member", "byte_offset", "row"}
"""Columns that say where a screen was found."""

Files = list[tuple[str, bytes]]


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


def rows(folder: Path, shard: str, endpoint: str | None = None) -> list[dict]:
    """Rows of `screens` as a job would write them, without their source, by screen."""
    source = InputConfig(shards=(shard,), s3_endpoint=endpoint, unit_screens=16)
    config = job(folder, Path("x")).model_copy(update={"input": source})
    plan = make_plan(config)
    found = []
    with ThreadPoolExecutor(2) as pool:
        settings = worker_settings(config, plan).load
        for unit in plan.units:
            events = list(decode(read([unit], settings), settings, pool))
            assert not [event for event in events if isinstance(event, Refused)]
            screens = tuple(event.screen for event in events if isinstance(event, Decoded))
            found += screen_rows(JudgedUnit(unit, 0.0, screens, (), ()))
    kept = [{k: v for k, v in row.items() if k not in SOURCE} for row in found]
    return sorted(kept, key=lambda row: row["screen_id"])


@pytest.mark.parametrize("tar", TRIED, ids=lambda tar: tar.stem)
def test_screens_packed_in_every_way_give_the_same_rows(tar: Path, tmp_path: Path) -> None:
    files = contents(tar)
    expected = rows(tmp_path, str(tar))
    assert len(expected) == sum(not name.endswith(".json") for name, _ in files)
    for name, data in files:
        path = tmp_path / "carpeta" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert rows(tmp_path, f"{tmp_path}/carpeta") == expected
    for name, pack in PACKED.items():
        (tmp_path / name).write_bytes(pack(files))
        assert rows(tmp_path, f"{tmp_path}/{name}") == expected, name


@pytest.mark.s3
def test_every_format_read_from_s3_gives_the_rows_it_gives_from_disk(
    tmp_path: Path, s3: S3Server
) -> None:
    files = contents(BUNDLED[0])[:10]
    objects = {name: pack(files) for name, pack in PACKED.items()}
    objects |= {f"carpeta/{name}": data for name, data in files}
    s3.put("formatos", objects)
    (tmp_path / "x.tar").write_bytes(as_tar(files))
    expected = rows(tmp_path, f"{tmp_path}/x.tar")
    for name in [*PACKED, "carpeta/"]:
        assert rows(tmp_path, f"s3://formatos/{name}", s3.endpoint) == expected, name
