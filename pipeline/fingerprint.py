"""What makes two runs the same: the fingerprint, and the head file of a dataset that holds it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TypeAlias

from pydantic import JsonValue

from schemas.commits import DatasetHead, head_to_json, read_head
from schemas.errors import DatasetError, StorageError
from schemas.ids import content_id
from schemas.tables import SCHEMA_VERSION
from transforms.commit import COMMITS, HEAD, RUN
from transforms.storage import PassingError, Storage, join_uri, storage_for

log = logging.getLogger(__name__)

Ingredients: TypeAlias = "Mapping[str, JsonValue]"


def fingerprint_of(ingredients: Ingredients) -> str:
    """Hash of everything that shapes rows, schema version included."""
    return content_id({**ingredients, "schema_version": SCHEMA_VERSION}, length=64)


def claim_dataset(uri: str, ingredients: Ingredients, s3_endpoint: str | None) -> None:
    """Make the dataset's head file, or check that the one there says the same.

    A dataset without a single committed unit is free for other settings: a job that failed before
    its first unit must not stand in the way of its correction.

    Raises:
        DatasetError: if the dataset was made under other settings, naming each difference, or
            nothing can be written there.
        PassingError: if the store is in trouble that may pass.
    """
    try:
        _claim(uri, ingredients, s3_endpoint)
    except PassingError:
        raise
    except StorageError as error:
        raise DatasetError(f"output.dataset = {uri} cannot be used: {error}") from error


def _claim(uri: str, ingredients: Ingredients, s3_endpoint: str | None) -> None:
    storage = storage_for(uri, s3_endpoint)
    target = join_uri(uri, HEAD)
    head = DatasetHead(
        fingerprint=fingerprint_of(ingredients),
        schema_version=SCHEMA_VERSION,
        ingredients=dict(ingredients),
    )
    if not creates_once(storage, uri):
        log.warning(
            "%s: this store ignores conditional writes (If-None-Match). A job alone on it loses "
            "nothing; two at once never mix their parts, but may do a unit twice",
            uri,
        )
    # Looked at before, for stores that ignore the condition, and after, for races on them.
    if not storage.exists(target):
        storage.create(target, head_to_json(head))
    found = read_head(storage.read(target), target)
    if found.fingerprint == head.fingerprint:
        return
    if _committed(storage, uri):
        raise DatasetError(_difference(uri, found, head))
    _take_over(storage, uri, found, head)


def creates_once(storage: Storage, uri: str) -> bool:
    """Whether the store refuses to create an object that is there, tried on a key of our own."""
    probe = join_uri(uri, RUN, "conditional-write")
    return not (storage.create(probe, b"1") and storage.create(probe, b"2"))


def _take_over(storage: Storage, uri: str, found: DatasetHead, head: DatasetHead) -> None:
    """Put our head in the place of another one, unless its job commits a unit meanwhile.

    The head first, then a look for records; a commit does it the other way round, see
    `transforms.commit`. One of the two must see the other.
    """
    target = join_uri(uri, HEAD)
    storage.write_atomic(target, head_to_json(head))
    if _committed(storage, uri):
        storage.write_atomic(target, head_to_json(found))
        raise DatasetError(_difference(uri, found, head))


def _committed(storage: Storage, uri: str) -> bool:
    return any(True for _ in storage.list(join_uri(uri, COMMITS) + "/"))


def _difference(uri: str, found: DatasetHead, wanted: DatasetHead) -> str:
    old, new = _flat(found.ingredients), _flat(wanted.ingredients)
    old["schema_version"], new["schema_version"] = found.schema_version, wanted.schema_version
    lines = [
        f"  {key}: {old.get(key, 'not set')} in the dataset, {new.get(key, 'not set')} in this job"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    return "\n".join(
        [
            f"{uri} was made under other settings, and a dataset never mixes two:",
            *lines,
            "Set them back, point output.dataset at a new place, or add --new-version to `run`.",
        ]
    )


def _flat(value: JsonValue, prefix: str = "") -> dict[str, str]:
    """Leaves of nested mappings by dotted name, as JSON text."""
    if not isinstance(value, dict):
        return {prefix: json.dumps(value, ensure_ascii=False, sort_keys=True)}
    leaves: dict[str, str] = {}
    for key, inner in value.items():
        leaves |= _flat(inner, f"{prefix}.{key}" if prefix else key)
    return leaves
