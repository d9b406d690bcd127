"""Small shards, made by the tests that need them."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from PIL import Image

from schemas.codes import RejectReason
from schemas.records import Member, Reject, Shard, Unit
from transforms.shards import RawScreen, index_shard, list_shards, read_unit, split_units


def png(width: int = 16, height: int = 12, color: tuple[int, int, int] = (200, 30, 30)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), color).save(buffer, "PNG")
    return buffer.getvalue()


def sidecar(instruction: str) -> bytes:
    return json.dumps({"queries": [{"instruction": instruction}]}, ensure_ascii=False).encode()


def tar_bytes(
    files: list[tuple[str, bytes]], tar_format: int = tarfile.PAX_FORMAT, mode: str = "w"
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=tar_format) as tar:  # type: ignore[call-overload] # any mode
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zip_bytes(files: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


def parquet_bytes(columns: dict[str, pa.Array], rows_per_group: int = 2) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=rows_per_group)
    return buffer.getvalue()


def zstd(data: bytes, frame_bytes: int = 0) -> bytes:
    """One frame, or one for every `frame_bytes`."""
    size = frame_bytes or max(len(data), 1)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(map(zstandard.ZstdCompressor().compress, pieces))


def write(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def only_shard(pattern: str) -> Shard:
    (shard,) = list_shards([pattern])
    return shard


def units_of(pattern: str, unit_screens: int = 64) -> list[Unit]:
    shard = only_shard(pattern)
    return split_units(shard, index_shard(shard), unit_screens)


def read_all(pattern: str) -> list[RawScreen | Reject]:
    return [item for unit in units_of(pattern, 2) for item in read_unit(unit)]


def names(members: tuple[Member, ...]) -> list[str]:
    return [member.name for member in members]


def screens(pattern: str) -> list[RawScreen]:
    return [item for item in read_all(pattern) if isinstance(item, RawScreen)]


def problems(pattern: str) -> list[tuple[str | None, RejectReason]]:
    return [(p.member, p.reason) for p in index_shard(only_shard(pattern)).problems]
