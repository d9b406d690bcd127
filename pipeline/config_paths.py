"""Which settings are paths, and what a relative one is relative to."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")


def resolve_paths(values: dict[str, _T], base: Path) -> None:
    """Make the relative paths among `values` absolute, in place.

    Addresses (`s3://...`) stay as they are; so do profile names, and checkpoints that are model
    ids rather than folders. Values of the wrong type are left for validation to name.

    Args:
        values: a job as read from TOML, or a part of it.
        base: the folder that relative paths start from.
    """
    shards = _take(values, "input", "shards")
    if isinstance(shards, list):
        _put(values, "input", "shards", [_absolute(item, base) for item in shards])
    elif shards is not None:
        _put(values, "input", "shards", _absolute(shards, base))
    for section, key in (("input", "queries"), ("output", "dataset"), ("run", "heartbeat")):
        if (value := _take(values, section, key)) is not None:
            _put(values, section, key, _absolute(value, base))
    profile = _take(values, "model", "profile")
    if isinstance(profile, str) and (profile.endswith(".toml") or os.path.sep in profile):
        _put(values, "model", "profile", _absolute(profile, base))
    checkpoint = _take(values, "model", "checkpoint")
    if isinstance(checkpoint, str) and checkpoint:
        folder = _absolute(checkpoint, base)
        if Path(str(folder)).exists():
            _put(values, "model", "checkpoint", folder)


def _take(values: dict[str, _T], section: str, key: str) -> object:
    inner = values.get(section)
    return inner.get(key) if isinstance(inner, dict) else None


def _put(values: dict[str, _T], section: str, key: str, value: object) -> None:
    inner = values[section]
    assert isinstance(inner, dict)
    inner[key] = value


def _absolute(value: object, base: Path) -> object:
    """`value` as an absolute path; a trailing slash means a folder and is kept."""
    if not isinstance(value, str) or not value or "://" in value:
        return value
    # Not Path.expanduser, which raises for a user that does not exist.
    joined = os.path.normpath(base / os.path.expanduser(value))  # noqa: PTH111
    return joined + "/" if value.endswith("/") and joined != "/" else joined
