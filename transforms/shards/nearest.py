"""What exists near a pattern that matches nothing: for the error message."""

from __future__ import annotations

import difflib
import unicodedata

from schemas.errors import StorageError
from transforms.storage import ObjectMissingError, Storage, parent_uri


def nearest_existing(uri: str, storage: Storage) -> str:
    """The most similar name in the deepest folder of `uri` that exists, or that folder."""
    wanted, folder = uri.rstrip("/"), parent_uri(uri)
    while not _is_folder(folder, storage):
        if folder in {"/", "s3://", "//"}:
            return "nothing"
        wanted, folder = folder.rstrip("/"), parent_uri(folder)
    names = {unicodedata.normalize("NFC", child): child for child in storage.children(folder)}
    target = unicodedata.normalize("NFC", wanted)
    close = difflib.get_close_matches(target, list(names), n=1, cutoff=0.6)
    shared = [name for name in close if name.rstrip("/") != folder.rstrip("/")]
    return names[shared[0]] if shared else folder


def _is_folder(folder: str, storage: Storage) -> bool:
    try:
        return storage.is_folder(folder)
    except ObjectMissingError:
        return False
    except StorageError:
        if folder in {"/", "s3://", "//"}:
            return False
        raise
