"""Patterns of the config to shards."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from schemas.errors import InputError
from schemas.records import Shard, ShardDefaults, ShardKind
from transforms.shards.archive import GZIP_MAGIC
from transforms.shards.defaults import is_defaults, read_defaults
from transforms.shards.glob import expand_glob, has_magic
from transforms.shards.index import FOLDERS
from transforms.shards.names import (
    DEAD_LINK,
    DEFAULTS_NAME,
    MESSAGES_NAME,
    PARQUET_SUFFIXES,
    TAR_SUFFIXES,
    ZIP_SUFFIX,
    base_name,
    is_ignored,
    is_image,
    is_metadata,
    is_shard_file,
)
from transforms.shards.nearest import nearest_existing
from transforms.shards.zstd_stream import is_zstd
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
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")


def list_shards(patterns: Sequence[str], s3_endpoint: S3Address = None) -> list[Shard]:
    """Every shard the patterns name, ordered by URI, each once.

    A pattern is a file, a folder or a glob (`*`, `?`, `[abc]`, `**`); what exists under exactly
    that name wins over the glob meaning, and the name may be spelled in NFC or NFD. A folder that
    holds tars, zips or Parquet files stands for those; any other folder is one shard of images, and
    one with agents' messages among them is a WebVoyager results folder. A `shard.toml` in a folder
    speaks for the shards, or the images, in it.

    Args:
        patterns: local paths, `file://` URLs or `s3://` URIs.
        s3_endpoint: address of an S3-compatible server.

    Raises:
        InputError: if a pattern matches nothing that can be read, a name is not UTF-8, or a
            `shard.toml` is wrong.
        StorageError: if a store does not answer.
    """
    shards: dict[str, Shard] = {}
    storages: dict[str, Storage] = {}
    for pattern in patterns:
        storage = storage_for(pattern, s3_endpoint)
        for shard in _shards_of(pattern, normalize_uri(pattern), storage):
            _check_name(shard.uri)
            shards[shard.uri], storages[shard.uri] = shard, storage
    found = [shards[uri] for uri in sorted(shards) if not _is_covered(uri, shards)]
    return _with_notes(found, storages)


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
    listed = list(storage.list(folder))
    told = [file.uri[len(folder) :] for file in listed]
    files = [f for f, name in zip(listed, told, strict=True) if not is_ignored(name)]
    direct = [f for f in files if "/" not in f.uri[len(folder) :]]
    has_images = any(is_image(f.uri) for f in files)
    shards = [f for f in direct if _is_shard(f, has_images=has_images)]
    if shards and any(is_image(f.uri) for f in direct):
        raise InputError(
            f"{folder}: holds both images and shards such as {shards[0].uri}; "
            "keep them apart or name the shards"
        )
    if not shards and not has_images:
        shards = [f for f in files if _is_shard(f, has_images=False)]
    if shards:
        _check_links(folder, shards, storage)
        return [_file_shard(f, storage) for f in shards]
    is_voyage = any(base_name(f.uri) == MESSAGES_NAME for f in files) and has_images
    kind = ShardKind.WEBVOYAGER if is_voyage else ShardKind.FOLDER
    notes = [name for name in told if is_defaults(name)]
    return [Shard(folder, kind, defaults=read_defaults(folder, notes, storage))]


def _check_links(folder: str, shards: Sequence[ObjectStat], storage: Storage) -> None:
    """A shard that a link does not reach would be lost with all it holds."""
    deep = any("/" in shard.uri[len(folder) :] for shard in shards)
    for uri in storage.dead_links(folder):
        name = uri[len(folder) :]
        if is_shard_file(name) and not is_ignored(name) and (deep or "/" not in name):
            raise InputError(f"{uri}: {DEAD_LINK}; mend or remove it")


def _is_shard(file: ObjectStat, *, has_images: bool) -> bool:
    """Whether a file is a shard; beside or above images, `metadata.parquet` is a table of them."""
    return is_shard_file(file.uri) and not (has_images and is_metadata(file.uri))


def _file_shard(file: ObjectStat, storage: Storage) -> Shard:
    kind = _kind_by_name(file.uri) or _kind_by_content(file, storage)
    if kind is None:
        advice = (
            f"an image; a shard is its folder: {parent_uri(file.uri)}"
            if is_image(file.uri)
            else "neither a tar nor a zip nor a Parquet file"
        )
        raise InputError(f"{file.uri}: is {advice}")
    return Shard(file.uri, kind, file.size, file.version)


def _kind_by_name(uri: str) -> ShardKind | None:
    name = uri.lower()
    if name.endswith(TAR_SUFFIXES):
        return ShardKind.TAR
    if name.endswith(ZIP_SUFFIX):
        return ShardKind.ZIP
    return ShardKind.PARQUET if name.endswith(PARQUET_SUFFIXES) else None


def _kind_by_content(file: ObjectStat, storage: Storage) -> ShardKind | None:
    head = storage.read_range(file.uri, 0, min(_SNIFF, file.size), file.version)
    if head.startswith(b"PAR1"):
        return ShardKind.PARQUET
    if head.startswith(_ZIP_MAGICS):
        return ShardKind.ZIP
    is_tar = head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"
    return ShardKind.TAR if is_tar or head.startswith(GZIP_MAGIC) or is_zstd(head) else None


def _with_notes(shards: Sequence[Shard], storages: Mapping[str, Storage]) -> list[Shard]:
    """Shard files with what the `shard.toml` in their folder says, each read once."""
    notes: dict[str, tuple[ShardDefaults, ...]] = {}
    for shard in shards:
        folder = parent_uri(shard.uri)
        if shard.kind not in FOLDERS and folder not in notes:
            storage = storages[shard.uri]
            there = storage.exists(folder + DEFAULTS_NAME)
            notes[folder] = read_defaults(folder, [DEFAULTS_NAME], storage) if there else ()
    return [
        shard if shard.kind in FOLDERS else replace(shard, defaults=notes[parent_uri(shard.uri)])
        for shard in shards
    ]
