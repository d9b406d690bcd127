"""A revision for checkpoints in a local folder: a hash of what the model is made of."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

HASH_LIMIT_BYTES = 256 * 2**20
"""Folders up to this size are hashed whole; larger ones by names, sizes and small files only."""

_SMALL_FILE_BYTES = 32 * 2**20


def local_revision(folder: Path) -> str:
    """A revision such as `sha256:3f2a...` (32 hex digits) of a checkpoint folder.

    It covers config, tokenizer, processor and weight files. When the folder is larger than 256 MiB
    the weights count by name and size only, with their index and the small files by content; the
    revision then begins with `sizes:`, because weights of equal shape are not told apart.
    """
    files = sorted(path for path in folder.iterdir() if _shapes_answers(path))
    whole = sum(path.stat().st_size for path in files) <= HASH_LIMIT_BYTES
    listing = [[path.name, path.stat().st_size, _content(path, whole=whole)] for path in files]
    digest = hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:32]
    return f"{'sha256' if whole else 'sizes'}:{digest}"


def _shapes_answers(path: Path) -> bool:
    """Whether a file is part of the model: not hidden, not documentation."""
    return path.is_file() and not path.name.startswith(".") and path.suffix != ".md"


def _content(path: Path, *, whole: bool) -> str:
    if not whole and path.stat().st_size > _SMALL_FILE_BYTES:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
