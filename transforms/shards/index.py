"""What is in a shard, found without reading pixels."""

from __future__ import annotations

from dataclasses import replace

from schemas.codes import RejectReason
from schemas.records import Problem, Shard, ShardKind
from transforms.shards.base import ShardIndex, state_of
from transforms.shards.folder import index_folder
from transforms.shards.kept import IndexStore
from transforms.shards.parquet import index_parquet
from transforms.shards.tar import index_tar
from transforms.shards.zip_archive import index_zip
from transforms.storage import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    S3Address,
    Storage,
    storage_for,
)

_INDEXERS = {
    ShardKind.TAR: index_tar,
    ShardKind.FOLDER: index_folder,
    ShardKind.WEBVOYAGER: index_folder,
    ShardKind.PARQUET: index_parquet,
    ShardKind.ZIP: index_zip,
}
FOLDERS = frozenset({ShardKind.FOLDER, ShardKind.WEBVOYAGER})
"""Kinds that are no file of their own: they have no size and no state."""


def index_shard(
    shard: Shard, s3_endpoint: S3Address = None, kept: IndexStore | None = None
) -> ShardIndex:
    """Members and problems of a shard; what is wrong with the data is a problem, not an error.

    Args:
        shard: one of `list_shards`.
        s3_endpoint: address of an S3-compatible server.
        kept: where indexes are looked for; nothing is written there.

    Raises:
        StorageError: if the store does not answer, which says nothing about the shard.
    """
    storage = storage_for(shard.uri, s3_endpoint)
    try:
        index = _index(shard, storage, kept)
    except (ObjectChangedError, ObjectDeniedError, ObjectMissingError) as error:
        return ShardIndex((), (Problem(None, RejectReason.SHARD_UNREADABLE, str(error)),))
    if index.members or index.problems:
        return index
    return ShardIndex((), (Problem(None, RejectReason.SHARD_EMPTY, "holds no image"),))


def _index(shard: Shard, storage: Storage, kept: IndexStore | None) -> ShardIndex:
    """The kept index if it is one of this very file, else a new one."""
    if shard.kind in FOLDERS:
        return _INDEXERS[shard.kind](shard, storage)
    state = state_of(storage.stat(shard.uri))
    found = kept.find(shard, state) if kept else None
    return found or replace(_INDEXERS[shard.kind](shard, storage), state=state)
