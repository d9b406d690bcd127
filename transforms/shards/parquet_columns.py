"""Which columns of a Parquet file hold images and sidecars, and what one value holds."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from transforms.source_text import decode_text
from transforms.storage import ObjectDeniedError, ObjectMissingError, Storage, join_uri, parent_uri

_IMAGE_NAMES = ("image", "images", "bytes")
_SIDECAR_NAMES = ("json", "sidecar")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns that are read.

    Attributes:
        lists: whether a row holds a list of images.
    """

    image: str
    sidecar: str | None
    lists: bool = False


def find_columns(schema: pa.Schema) -> Columns:
    """The image column: `image`, `images` or `bytes`, else the first struct, else the first binary.

    Images are binary of any Arrow kind, dictionary-encoded too, or a struct with a binary field
    `bytes` (and mostly a `path`), as Hugging Face `datasets` writes them, or a list of either.
    Where there is none, text under one of the three names is read as base64. The sidecar is `json`
    or `sidecar`: text, binary or a struct.

    Raises:
        MemberRejected: SHARD_UNREADABLE, naming the columns there are, or one that occurs twice.
    """
    sidecar = next((name for name in _SIDECAR_NAMES if _is_sidecar(schema, name)), None)
    usable = [f for f in schema if f.name not in _SIDECAR_NAMES and _is_image(f.type)]
    if not usable:
        usable = [f for f in schema if f.name in _IMAGE_NAMES and _is_text(_inner(f.type))]
    usable.sort(key=lambda field: (_rank(field.name), not pt.is_struct(_inner(field.type))))
    if not usable:
        there = ", ".join(f"{field.name}: {field.type}" for field in schema)
        detail = f"no column of image bytes or struct<bytes, path>; there are: {there}"
        raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail)
    for name in (usable[0].name, *_SIDECAR_NAMES):
        if schema.names.count(name) > 1:
            detail = f"there are several columns `{name}`, and nothing says which is meant"
            raise MemberRejected(RejectReason.SHARD_UNREADABLE, detail)
    return Columns(usable[0].name, sidecar, is_list(usable[0].type))


def image_bytes(value: pa.Scalar, shard_uri: str, storage: Storage) -> bytes:
    """The image in one cell; a struct with only a relative `path` is read beside the shard.

    Raises:
        MemberRejected: for a null, for text that is not base64, or for a path that is absolute,
            leaves the folder or is not there.
    """
    if pt.is_struct(value.type) and value.is_valid:
        fields = dict(zip(value.type.names, (value[i] for i in range(len(value))), strict=True))
        path = _text(fields["path"]) if "path" in fields else None
        if path and not fields["bytes"].is_valid:
            return _read_path(path, shard_uri, storage)
        value = fields["bytes"]
    if not value.is_valid:
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, "the image is null")
    if _is_text(value.type):
        return _from_base64(bytes(value.as_buffer()).decode("ascii", "replace"))
    return bytes(value.as_py())


def _from_base64(text: str) -> bytes:
    """Bytes of base64 text, with or without the head of a `data:` URI and line breaks."""
    body = text.partition(",")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        detail = f"the image is text and no base64 ({error}): {text[:40]!r}"
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail) from error


def sidecar_bytes(value: pa.Scalar | None) -> bytes | None:
    """The sidecar in one cell as JSON, or None.

    Text is passed on as the bytes it is, UTF-8 or not. Of a struct, nulls are left out: Arrow has
    one for every key that another row has, so that `target: null` cannot mean "absent" here.
    """
    if value is None or not value.is_valid:
        return None
    if pt.is_dictionary(value.type):
        return sidecar_bytes(value.value)
    if pt.is_struct(value.type):
        return json.dumps(_plain(value), ensure_ascii=False).encode()
    return bytes(value.as_buffer())


_Plain: TypeAlias = "str | float | list[_Plain] | dict[str, _Plain] | None"


def _plain(value: pa.Scalar) -> _Plain:
    """What JSON can hold of an Arrow value; dates and binaries are in none of the fields read."""
    kind = value.type
    if not value.is_valid:
        return None
    if pt.is_dictionary(kind):
        return _plain(value.value)
    if pt.is_struct(kind):
        items = ((name, _plain(value[i])) for i, name in enumerate(kind.names))
        return {name: item for name, item in items if item is not None}
    if is_list(kind):
        return [_plain(item) for item in value]
    if pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_floating(kind):
        number: float = value.as_py()
        return number
    return _text(value) if _is_text(kind) else None


def _text(value: pa.Scalar) -> str | None:
    """Text of a cell; nothing in Arrow or Parquet makes sure that it is UTF-8."""
    if not value.is_valid or not _is_text(value.type):
        return None
    text, _ = decode_text(bytes(value.as_buffer()))
    return text


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of any kind."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def _inner(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if is_list(kind) else kind


def _rank(name: str) -> int:
    return _IMAGE_NAMES.index(name) if name in _IMAGE_NAMES else len(_IMAGE_NAMES)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        kind = kind.value_type
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind))


def _is_image(kind: pa.DataType) -> bool:
    kind = _inner(kind)
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
    return _is_text(kind) or pt.is_struct(kind) or _is_binary(kind)


def _read_path(path: str, shard_uri: str, storage: Storage) -> bytes:
    if path.startswith("/") or "://" in path or ".." in path.split("/"):
        detail = f"no bytes, and the path is not one beside the shard: {path}"
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, detail)
    try:
        return storage.read(join_uri(parent_uri(shard_uri), path))
    except (ObjectMissingError, ObjectDeniedError) as error:
        raise MemberRejected(RejectReason.MEMBER_UNREADABLE, f"no bytes, and {error}") from error
