"""Patterns of the config to shards."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence

from schemas.errors import InputError
from schemas.records import Shard, ShardKind
from transforms.shards.glob import expand_glob, has_magic
from transforms.shards.names import (
    PARQUET_SUFFIXES,
    TAR_SUFFIXES,
    is_ignored,
    is_image,
    is_shard_file,
)
from transforms.shards.nearest import nearest_existing
from transforms.storage import (
    ObjectMissingError,
    ObjectStat,
    S3Address,
    Storage,
    normalize_uri,
    parent_uri,
    storage_for,
)

_TAR_MAGIC_AT = 257
_SNIFF = 512


def list_shards(patterns: Sequence[str], s3_endpoint: S3Address = None) -> list[Shard]:
    """Every shard the patterns name, ordered by URI, each once.

    A pattern is a file, a folder or a glob (`*`, `?`, `[abc]`, `**`); what exists under exactly
    that name wins over the glob meaning, and the name may be spelled in NFC or NFD. A folder that
    holds tars or Parquet files stands for those; any other folder is one shard of images.

    Args:
        patterns: local paths, `file://` URLs or `s3://` URIs.
        s3_endpoint: address of an S3-compatible server.

    Raises:
        InputError: if a pattern matches nothing that can be read, or a name is not UTF-8.
        StorageError: if a store does not answer.
    """
    shards: dict[str, Shard] = {}
    for pattern in patterns:
        storage = storage_for(pattern, s3_endpoint)
        for shard in _shards_of(pattern, normalize_uri(pattern), storage):
            _check_name(shard.uri)
            shards[shard.uri] = shard
    return [shards[uri] for uri in sorted(shards) if not _is_covered(uri, shards)]


def _check_name(uri: str) -> None:
    """Every row names its shard, and no table can hold a name that is not text."""
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise InputError(f"{uri!a}: the name is not UTF-8; rename it") from None


def _is_covered(uri: str, shards: dict[str, Shard]) -> bool:
    """Whether a folder lies in another folder shard, which holds its images already."""
    if not uri.endswith("/"):
        return False
    above = itertools.accumulate(uri.rstrip("/").split("/")[:-1], lambda a, b: f"{a}/{b}")
    return any(f"{folder}/" in shards for folder in above)


def _shards_of(pattern: str, uri: str, storage: Storage) -> list[Shard]:
    try:
        for form in dict.fromkeys([uri, *(unicodedata.normalize(f, uri) for f in ("NFC", "NFD"))]):
            if storage.exists(form):
                return [_file_shard(storage.stat(form), storage)]
            if storage.is_folder(form):
                return _folder_shards(form.rstrip("/") + "/", storage)
        found = _globbed(pattern, uri, storage) if has_magic(uri) else []
    except ObjectMissingError as error:
        raise InputError(f"{pattern}: {error}") from error
    if not found:
        near = nearest_existing(uri, storage)
        raise InputError(f"{pattern}: matches nothing that can be read; nearest is {near}")
    return found


def _globbed(pattern: str, uri: str, storage: Storage) -> list[Shard]:
    """Shard files and folders that a glob matches; other files beside them are passed over."""
    matches = expand_glob(uri, storage)
    names = [match.rpartition("/")[2] for match in matches]
    images = [m for m, name in zip(matches, names, strict=True) if is_image(name)]
    if images:
        raise InputError(
            f"{pattern}: matches images such as {images[0]}; "
            f"a shard is their folder: {parent_uri(images[0])}"
        )
    shards: list[Shard] = []
    for match, name in zip(matches, names, strict=True):
        if match.endswith("/"):
            shards += _folder_shards(match, storage)
        elif is_shard_file(name) and not is_ignored(name):
            shards.append(_file_shard(storage.stat(match), storage))
    return shards


def _folder_shards(folder: str, storage: Storage) -> list[Shard]:
    files = [f for f in storage.list(folder) if not is_ignored(f.uri[len(folder) :])]
    direct = [f for f in files if "/" not in f.uri[len(folder) :]]
    shards = [f for f in direct if is_shard_file(f.uri)]
    if shards and any(is_image(f.uri) for f in direct):
        raise InputError(
            f"{folder}: holds both images and shards such as {shards[0].uri}; "
            "keep them apart or name the shards"
        )
    if not shards and not any(is_image(f.uri) for f in files):
        shards = [f for f in files if is_shard_file(f.uri)]
    if shards:
        return [_file_shard(f, storage) for f in shards]
    return [Shard(folder, ShardKind.FOLDER)]


def _file_shard(file: ObjectStat, storage: Storage) -> Shard:
    kind = _kind_by_name(file.uri) or _kind_by_content(file, storage)
    if kind is None:
        advice = (
            f"an image; a shard is its folder: {parent_uri(file.uri)}"
            if is_image(file.uri)
            else "neither a tar nor a Parquet file"
        )
        raise InputError(f"{file.uri}: is {advice}")
    return Shard(file.uri, kind, file.size, file.version)


def _kind_by_name(uri: str) -> ShardKind | None:
    if uri.lower().endswith(TAR_SUFFIXES):
        return ShardKind.TAR
    return ShardKind.PARQUET if uri.lower().endswith(PARQUET_SUFFIXES) else None


def _kind_by_content(file: ObjectStat, storage: Storage) -> ShardKind | None:
    head = storage.read_range(file.uri, 0, min(_SNIFF, file.size), file.version)
    if head.startswith(b"PAR1"):
        return ShardKind.PARQUET
    is_tar = head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar" or head.startswith(b"\x1f\x8b")
    return ShardKind.TAR if is_tar else None
