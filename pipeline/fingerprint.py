"""What makes two runs the same: the fingerprint, and the head file of a dataset that holds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from schemas.errors import DatasetError
from schemas.ids import Json, content_id
from schemas.tables import SCHEMA_VERSION
from transforms.storage import join_uri, storage_for

HEAD = "_dataset.json"
"""Name of the head file: the fingerprint of the dataset and what it is made of."""

Ingredients: TypeAlias = "Mapping[str, Json]"


def fingerprint_of(ingredients: Ingredients) -> str:
    """Hash of everything that shapes rows, schema version included."""
    return content_id({**ingredients, "schema_version": SCHEMA_VERSION}, length=64)


def claim_dataset(uri: str, ingredients: Ingredients, s3_endpoint: str | None) -> None:
    """Make the dataset's head file, or check that the one there says the same.

    Raises:
        DatasetError: if the dataset was made under other settings, naming each difference.
    """
    storage = storage_for(uri, s3_endpoint)
    target = join_uri(uri, HEAD)
    head: dict[str, Json] = {
        "fingerprint": fingerprint_of(ingredients),
        "schema_version": SCHEMA_VERSION,
        "ingredients": ingredients,
    }
    data = json.dumps(head, indent=1, ensure_ascii=False, sort_keys=True).encode()
    if storage.create(target, data):
        return
    found = _read_head(storage.read(target), target)
    if found.get("fingerprint") != head["fingerprint"]:
        raise DatasetError(_difference(uri, found, head))


def _read_head(data: bytes, target: str) -> dict[str, Json]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise DatasetError(f"{target}: is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DatasetError(f"{target}: must hold a JSON object")
    return found


def _difference(uri: str, found: Mapping[str, Json], wanted: Mapping[str, Json]) -> str:
    old, new = _flat(found.get("ingredients")), _flat(wanted["ingredients"])
    old["schema_version"] = str(found.get("schema_version"))
    new["schema_version"] = SCHEMA_VERSION
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


def _flat(value: Json, prefix: str = "") -> dict[str, str]:
    """Leaves of nested mappings by dotted name, as JSON text."""
    if not isinstance(value, Mapping):
        return {prefix: json.dumps(value, ensure_ascii=False)}
    leaves: dict[str, str] = {}
    for key, inner in value.items():
        leaves |= _flat(inner, f"{prefix}.{key}" if prefix else key)
    return leaves
