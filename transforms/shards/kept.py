"""Indexes of shards kept beside a dataset: a large tar is gone through once, not at every start.

`<dataset>/_index/<key>.members` holds what a shard is made of, `<key>.points` the places from which
a compressed one can be read on. The key names the shard's exact state, so that a shard that has
changed finds none. Losing these files costs time and nothing else: whatever cannot be read, or does
not fit the shard, is made again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache

import zstandard

from schemas.errors import StorageError
from schemas.ids import sha256_hex
from schemas.records import Shard
from transforms.shards.base import ShardIndex
from transforms.shards.kept_table import index_from_bytes, index_to_bytes
from transforms.storage import ObjectMissingError, Storage, join_uri
from transforms.storage.base import READ_AHEAD

INDEX = "_index"
"""Folder of the kept indexes; the underscore hides it from tools that read folders of Parquet."""

MIN_BYTES = READ_AHEAD
"""Smaller shards are not worth an index: one request brings them whole."""

_MAGIC = b"PANTALLA-INDEX-1\n"
_DIGEST_CHARS = 64
_MAX_POINTS = 2**30

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexStore:
    """The kept indexes of one dataset.

    Attributes:
        dataset: local folder or `s3://bucket/prefix`.
        storage: where it lies.
    """

    dataset: str
    storage: Storage

    def find(self, shard: Shard, state: str) -> ShardIndex | None:
        """The index of a shard in this very state, without its points; None = it must be made."""
        if shard.byte_size < MIN_BYTES:
            return None
        data = self.read(self.uri(state, "members"))
        return None if data is None else index_from_bytes(data, state)

    def points(self, shard: Shard, state: str) -> bytes:
        """Places from which the shard can be read on; empty where none are kept."""
        if shard.byte_size < MIN_BYTES:
            return b""
        return _points(self, self.uri(state, "points"))

    def keep(self, shard: Shard, index: ShardIndex) -> None:
        """Keep an index that was costly to make; a store that refuses it only says so in the log.

        The points come first: whoever finds the members finds them too.
        """
        if shard.byte_size < MIN_BYTES or not index.costly:
            return
        state = index.state
        try:
            if index.points:
                packed = zstandard.ZstdCompressor().compress(index.points)
                self.write(self.uri(state, "points"), packed)
            self.write(self.uri(state, "members"), index_to_bytes(index, state))
        except StorageError as error:
            log.warning("the index of %s is not kept: %s", shard.uri, error)

    def uri(self, state: str, kind: str) -> str:
        """Where `kind` of a shard in this state is kept."""
        return join_uri(self.dataset, INDEX, f"{sha256_hex(state.encode())[:32]}.{kind}")

    def read(self, uri: str) -> bytes | None:
        """What was written there, whole; None where there is nothing, or something else."""
        try:
            data = self.storage.read(uri)
        except ObjectMissingError:
            return None
        except StorageError as error:
            log.warning("a kept index cannot be read, and is made again: %s", error)
            return None
        digest, payload = data[len(_MAGIC) :][:_DIGEST_CHARS], data[len(_MAGIC) + _DIGEST_CHARS :]
        if not data.startswith(_MAGIC) or digest != sha256_hex(payload).encode():
            log.warning("%s is damaged or not ours, and is made again", uri)
            return None
        return payload

    def write(self, uri: str, payload: bytes) -> None:
        """Write it so that `read` can tell whether it is whole.

        Raises:
            StorageError: if it cannot be written.
        """
        whole = _MAGIC + sha256_hex(payload).encode() + payload
        self.storage.write_atomic(uri, whole)


@lru_cache(maxsize=4)
def _points(store: IndexStore, uri: str) -> bytes:
    """Read once for all units of a shard: some megabytes for a shard of many gigabytes."""
    packed = store.read(uri)
    if packed is None:
        return b""
    try:
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=_MAX_POINTS)
    except zstandard.ZstdError:
        return b""
