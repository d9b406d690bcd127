"""Glob patterns on a local disk and on S3."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from transforms.storage import Storage

_MAGIC = "*?["


def has_magic(uri: str) -> bool:
    """Whether `uri` could be a glob."""
    return any(sign in uri for sign in _MAGIC)


def expand_glob(uri: str, storage: Storage) -> list[str]:
    """What a glob matches, sorted: files, and folders ending in `/`.

    The longest leading run of folders that exist under exactly their name is taken literally, so
    brackets in real folder names keep working before a `*`.
    """
    base, rest = _split(uri, storage)
    if uri.startswith("s3://"):
        files = (file.uri for file in storage.list(base))
        return sorted(_match_keys(base, rest, files))
    folders_only = rest.endswith("/")
    found = glob.glob(rest, root_dir=base, recursive=True)  # noqa: PTH207 - Path.glob has no root
    paths = [Path(base, name) for name in found]
    marked = {f"{path}/" if path.is_dir() else str(path) for path in paths}
    return sorted(m for m in marked if m.endswith("/") or not folders_only)


def _split(uri: str, storage: Storage) -> tuple[str, str]:
    """The literal folder a glob starts in, ending in `/`, and the rest of the glob."""
    scheme, parts = (
        ("s3://", uri[5:].split("/")) if uri.startswith("s3://") else ("", uri.split("/"))
    )
    depth = 1
    while depth < len(parts) - 1:
        step = parts[depth]
        if has_magic(step) and not storage.is_folder(scheme + "/".join(parts[: depth + 1])):
            break
        depth += 1
    return scheme + "/".join(parts[:depth]) + "/", "/".join(parts[depth:])


def _match_keys(base: str, pattern: str, uris: Iterable[str]) -> set[str]:
    wanted = pattern.rstrip("/").split("/")
    found: set[str] = set()
    for uri in uris:
        parts = uri[len(base) :].split("/")
        heads = itertools.accumulate(parts, lambda head, part: f"{head}/{part}")
        for depth, head in enumerate(heads, start=1):
            is_file = depth == len(parts)
            if is_file and pattern.endswith("/"):
                continue
            if _matches(parts[:depth], wanted):
                found.add(base + head + ("" if is_file else "/"))
    return found


def _matches(parts: list[str], wanted: list[str]) -> bool:
    """Whether path segments match glob segments; `**` stands for any number of segments."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_matches(parts[i:], wanted[1:]) for i in range(len(parts) + 1))
    if not parts or (parts[0].startswith(".") and not wanted[0].startswith(".")):
        return False
    return fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])
