"""Contents kept beside a dataset: a picture is hashed once, not at every start of every process.

`<dataset>/_index/<key>.contents` holds those of one shard; the key names the shard's exact state.
Losing these files costs time and nothing else.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable

import pyarrow as pa

from schemas.errors import StorageError
from schemas.ids import content_id
from schemas.records import Shard
from transforms.identity.contents import Content
from transforms.shards import IndexStore
from transforms.shards.base import state_of
from transforms.storage import S3Address, storage_for

_KIND = "contents"
_FORM = b"pantalla.contents"
_VERSION = b"1"
"""Changes whenever an instruction is read otherwise than before."""

_SCHEMA = pa.schema(
    [
        ("member", pa.string()),
        ("screen_id", pa.string()),
        ("instructions", pa.list_(pa.string())),
        ("perceptual_hash", pa.string()),
    ],
    metadata={_FORM: _VERSION},
)

log = logging.getLogger(__name__)


def shard_state(shard: Shard, s3: S3Address = None) -> str:
    """What tells the files of a shard from any others; of a folder, all that is listed in it.

    Raises:
        StorageError: if the store does not answer, or there is no such shard.
    """
    storage = storage_for(shard.uri, s3)
    if not shard.uri.endswith("/"):
        return state_of(storage.stat(shard.uri))
    return content_id([state_of(file) for file in storage.list(shard.uri)])


def find_contents(store: IndexStore, state: str) -> dict[str, Content]:
    """The kept contents of a shard in this very state, by member; empty where there are none."""
    data = store.read(store.uri(state, _KIND))
    if data is None:
        return {}
    try:
        with pa.ipc.open_stream(data) as reader:
            if (reader.schema.metadata or {}).get(_FORM) != _VERSION:
                return {}
            rows = reader.read_all().to_pylist()
        found = [Content(**{**row, "instructions": tuple(row["instructions"])}) for row in rows]
    except (pa.ArrowException, KeyError, TypeError):
        return {}
    return {content.member: content for content in found}


def keep_contents(store: IndexStore, state: str, contents: Iterable[Content]) -> None:
    """Keep the contents of a shard; a store that refuses it only says so in the log."""
    names = _SCHEMA.names
    rows = [{name: getattr(content, name) for name in names} for content in contents]
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, _SCHEMA, options=options) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
    try:
        store.write(store.uri(state, _KIND), sink.getvalue())
    except StorageError as error:
        log.warning("hashes of pictures are not kept: %s", error)
