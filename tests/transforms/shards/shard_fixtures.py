"""Small shards, made by the tests that need them."""

import io
import json
import tarfile
from pathlib import Path

from PIL import Image

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
