"""`shard.toml`: what holds for all screens of a shard or folder, said once beside them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

from schemas.errors import InputError
from schemas.records import Shard, ShardDefaults
from transforms.shards.names import DEFAULTS_NAME, folder_of
from transforms.sidecar_boxes import convention_of_shard
from transforms.source_text import decode_text
from transforms.storage import Storage, join_uri

FIELDS = ("licence", "source", "locale", "app", "app_version", "box_format", "box_frame")
"""Keys that are read; a screen's own sidecar wins. Any other key is left for people to read."""


def read_defaults(
    folder_uri: str, names: Iterable[str], storage: Storage
) -> tuple[ShardDefaults, ...]:
    """What the `shard.toml` files at `names`, relative to a folder, say; the deepest first.

    Raises:
        InputError: if one is not TOML, or a value is not a text: said before anything runs.
        StorageError: if one cannot be read.
    """
    found = [
        ShardDefaults(folder_of(name), _fields(join_uri(folder_uri, name), storage))
        for name in names
    ]
    told = [defaults for defaults in found if defaults.fields]
    return tuple(sorted(told, key=lambda defaults: (-defaults.folder.count("/"), defaults.folder)))


def defaults_of(shard: Shard, member: str) -> tuple[tuple[str, str], ...]:
    """The fields that hold for one member: of each, the one from the deepest folder."""
    if not shard.defaults:
        return ()
    fields: dict[str, str] = {}
    for defaults in reversed(shard.defaults):
        if member.startswith(defaults.folder):
            fields |= dict(defaults.fields)
    return tuple(sorted(fields.items()))


def is_defaults(name: str) -> bool:
    """Whether a file of a folder is a `shard.toml`."""
    return name == DEFAULTS_NAME or name.endswith("/" + DEFAULTS_NAME)


def _fields(uri: str, storage: Storage) -> tuple[tuple[str, str], ...]:
    text, _ = decode_text(storage.read(uri))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{uri}: not TOML: {error}") from error
    if "license" in table:
        table.setdefault("licence", table["license"])
    fields = {key: table[key] for key in FIELDS if key in table}
    wrong = [key for key, value in fields.items() if not isinstance(value, str)]
    if wrong:
        raise InputError(f'{uri}: `{wrong[0]}` must be a text, for example {wrong[0]} = "..."')
    try:
        convention_of_shard(fields.items())
    except ValueError as error:
        raise InputError(f"{uri}: box_format and box_frame: {error}") from error
    return tuple(sorted(fields.items()))
