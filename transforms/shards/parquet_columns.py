"""Which columns of a Parquet file hold images and sidecars, and what one value holds."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from transforms.storage import ObjectDeniedError, ObjectMissingError, Storage, join_uri, parent_uri

_IMAGE_NAMES = ("image", "bytes")
_SIDECAR_NAMES = ("json", "sidecar")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns that are read."""

    image: str
    sidecar: str | None


def find_columns(schema: pa.Schema) -> Columns:
    """The image column: `image`, else `bytes`, else the first that can hold images.

    Images are binary of any Arrow kind, dictionary-encoded too, or a struct with a binary field
    `bytes` (and mostly a `path`), as Hugging Face `datasets` writes them. The sidecar is `json` or
    `sidecar`: text, binary or a struct.

    Raises:
        MemberRejected: SHARD_UNREADABLE, naming the columns there are.
    """
    sidecar = next((name for name in _SIDECAR_NAMES if _is_sidecar(schema, name)), None)
    usable = [f.name for f in schema if f.name not in _SIDECAR_NAMES and _is_image(f.type)]
    named = [name for name in _IMAGE_NAMES if name in usable]
    if not usable:
        there = ", ".join(f"{field.name}: {field.type}" for field in schema)
        detail = f"no column of image bytes or struct<bytes, path>; there are: {there}"
        raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail)
    return Columns((named or usable)[0], sidecar)


def image_bytes(value: pa.Scalar, shard_uri: str, storage: Storage) -> bytes:
    """The image in one cell; a struct with only a relative `path` is read beside the shard.

    Raises:
        MemberRejected: for a null, or a path that is absolute, leaves the folder or is not there.
    """
    cell = value.as_py()
    if isinstance(cell, dict):
        if cell.get("bytes") is None and cell.get("path"):
            return _read_path(str(cell["path"]), shard_uri, storage)
        cell = cell.get("bytes")
    if cell is None:
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, "the image is null")
    return bytes(cell)


def sidecar_bytes(value: pa.Scalar | None) -> bytes | None:
    """The sidecar in one cell as JSON, or None."""
    cell = None if value is None else value.as_py()
    if cell is None or isinstance(cell, bytes):
        return cell
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogatepass")
    return json.dumps(cell, ensure_ascii=False, default=str).encode()


def _is_binary(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        kind = kind.value_type
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind))


def _is_image(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0 and _is_binary(kind.field("bytes").type))
    return _is_binary(kind)


def _is_sidecar(schema: pa.Schema, name: str) -> bool:
    index = schema.get_field_index(name)
    if index < 0:
        return False
    kind = schema.field(index).type
    if pt.is_dictionary(kind):
        kind = kind.value_type
    text = pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
    return bool(text or pt.is_struct(kind) or _is_binary(kind))


def _read_path(path: str, shard_uri: str, storage: Storage) -> bytes:
    if path.startswith("/") or "://" in path or ".." in path.split("/"):
        detail = f"no bytes, and the path is not one beside the shard: {path}"
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail)
    try:
        return storage.read(join_uri(parent_uri(shard_uri), path))
    except (ObjectMissingError, ObjectDeniedError) as error:
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, f"no bytes, and {error}") from error
