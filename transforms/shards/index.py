"""What is in a shard, found without reading pixels."""

from __future__ import annotations

from schemas.codes import RejectReason
from schemas.records import Problem, Shard, ShardKind
from transforms.shards.base import ShardIndex
from transforms.shards.folder import index_folder
from transforms.shards.parquet import index_parquet
from transforms.shards.tar import index_tar
from transforms.storage import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    S3Address,
    storage_for,
)

_INDEXERS = {
    ShardKind.TAR: index_tar,
    ShardKind.FOLDER: index_folder,
    ShardKind.PARQUET: index_parquet,
}


def index_shard(shard: Shard, s3_endpoint: S3Address = None) -> ShardIndex:
    """Members and problems of a shard; what is wrong with the data is a problem, not an error.

    Args:
        shard: one of `list_shards`.
        s3_endpoint: address of an S3-compatible server.

    Raises:
        StorageError: if the store does not answer, which says nothing about the shard.
    """
    storage = storage_for(shard.uri, s3_endpoint)
    try:
        index = _INDEXERS[shard.kind](shard, storage)
    except (ObjectChangedError, ObjectDeniedError, ObjectMissingError) as error:
        return ShardIndex((), (Problem(None, RejectReason.SHARD_UNREADABLE, str(error)),))
    if index.members or index.problems:
        return index
    return ShardIndex((), (Problem(None, RejectReason.SHARD_EMPTY, "holds no image"),))
