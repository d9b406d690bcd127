"""Versions of a dataset: `name` is the first one, `name@v2`, `name@v3`, ... lie beside it.

A run with other settings never mixes into what is there; `--new-version` gives it a place of its
own. Each version is a whole dataset with a head, records and parts of its own, so nothing of an
older one can be read by accident, and one is removed by removing its folder.
"""

from __future__ import annotations

import re

from pipeline.fingerprint import Ingredients, fingerprint_of
from schemas.commits import read_head
from transforms.commit import COMMITS, HEAD
from transforms.storage import join_uri, normalize_uri, storage_for

_NAMED = re.compile(r"(?P<base>.*[^/])@v(?P<number>[1-9][0-9]{0,5})")
_GAP = 2
"""Missing numbers in a row that end the search: one version in the middle may have been removed."""


def version_root(base: str, number: int) -> str:
    """Where version `number` of the dataset `base` lies."""
    return base if number == 1 else f"{base}@v{number}"


def newest_root(uri: str, s3_endpoint: str | None) -> str:
    """Where a reader looks: the version that is named (`name@v1`), else the newest one there is."""
    base, named = _split(uri)
    if named:
        return version_root(base, named)
    found = _numbers(base, s3_endpoint)
    return version_root(base, found[-1] if found else 1)


def root_for_run(
    uri: str, ingredients: Ingredients, s3_endpoint: str | None, *, new_version: bool = False
) -> str:
    """Where a run writes: the version made under its settings, else the newest or the next one.

    A version that is named is taken as it is, unless a new one is asked for.

    Args:
        uri: `output.dataset` of the job.
        ingredients: what the run's fingerprint is made of.
        s3_endpoint: of the dataset.
        new_version: whether settings that no version has may go to a new one; without, the newest
            is given, and claiming it refuses them by name.

    Raises:
        DatasetError: if the head file of a version is none.
    """
    base, named = _split(uri)
    if named and not new_version:
        return version_root(base, named)
    numbers = _numbers(base, s3_endpoint)
    wanted = fingerprint_of(ingredients)
    for number in reversed(numbers):
        if _fingerprint(version_root(base, number), s3_endpoint) == wanted:
            return version_root(base, number)
    newest = numbers[-1] if numbers else 1
    if new_version and _holds_units(version_root(base, newest), s3_endpoint):
        newest += 1
    return version_root(base, newest)


def _split(uri: str) -> tuple[str, int]:
    """Base and number of a named version; 0 where none is named."""
    root = normalize_uri(uri).rstrip("/")
    match = _NAMED.fullmatch(root)
    return (match["base"], int(match["number"])) if match else (root, 0)


def _numbers(base: str, s3_endpoint: str | None) -> list[int]:
    storage = storage_for(base, s3_endpoint)
    found: list[int] = []
    number = 1
    while number <= (found[-1] if found else 0) + _GAP:
        if storage.exists(join_uri(version_root(base, number), HEAD)):
            found.append(number)
        number += 1
    return found


def _fingerprint(root: str, s3_endpoint: str | None) -> str:
    uri = join_uri(root, HEAD)
    return read_head(storage_for(root, s3_endpoint).read(uri), uri).fingerprint


def _holds_units(root: str, s3_endpoint: str | None) -> bool:
    records = storage_for(root, s3_endpoint).list(join_uri(root, COMMITS) + "/")
    return any(True for _ in records)
