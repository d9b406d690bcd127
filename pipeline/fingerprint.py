"""What makes two runs the same: the fingerprint, and the head file of a dataset that holds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from pydantic import JsonValue

from schemas.commits import DatasetHead, head_to_json, read_head
from schemas.errors import DatasetError, StorageError
from schemas.ids import content_id
from schemas.tables import SCHEMA_VERSION
from transforms.commit import COMMITS, HEAD
from transforms.storage import join_uri, storage_for

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
    """
    try:
        _claim(uri, ingredients, s3_endpoint)
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
    if storage.create(target, head_to_json(head)):
        return
    found = read_head(storage.read(target), target)
    if found.fingerprint == head.fingerprint:
        return
    if any(True for _ in storage.list(join_uri(uri, COMMITS) + "/")):
        raise DatasetError(_difference(uri, found, head))
    storage.write_atomic(target, head_to_json(head))


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
            "Set them back, or point output.dataset at a new place.",
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
