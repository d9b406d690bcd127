"""Takes one member out of a shard, as files beside each other, for a look."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from schemas.errors import ConfigError
from schemas.ids import sha256_hex
from transforms.shards import take_member
from transforms.shards.names import readable_name
from transforms.storage import S3Address

_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\u202a-\u202e\u2066-\u2069]')
"""What some file system or terminal gives a meaning to."""

_MAX_NAME_BYTES = 200


class TakenOut(NamedTuple):
    """A file that was written.

    Attributes:
        sha256: of its bytes.
        damage: why they are not all that was meant to be there, or empty.
    """

    path: Path
    sha256: str
    damage: str = ""


def take_out(shard: str, member: str, folder: Path, s3: S3Address = None) -> list[TakenOut]:
    """Write the bytes of a member, and its sidecar's, into `folder`; nothing is overwritten.

    Args:
        shard: URI as in the `rejects` table.
        member: name as in the `rejects` table; the file's name is a safe form of it.
        folder: made where it is missing.
        s3: how to reach the shard.

    Returns:
        Each file written; of what is cut or damaged, the bytes before the damage.

    Raises:
        ConfigError: if a file is in the way, or nothing can be written there.
        InputError: if there is no such shard, or it has no bytes under this name.
        StorageError: if a disk or a store is in trouble.
    """
    wanted: list[tuple[Path, bytes, str]] = []
    for number, taken in enumerate(take_member(shard, member, s3)):
        path = Path(folder, safe_name(readable_name(member)[0], number))
        wanted.append((path, taken.data, taken.damage))
        if taken.sidecar is not None:
            wanted.append((path.with_suffix(".json"), taken.sidecar, ""))
    taken_already = next((path for path, *_ in wanted if path.exists()), None)
    if taken_already is not None:
        raise ConfigError(f"{taken_already}: is there already; name another folder with --to")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data, _ in wanted:
            with path.open("xb") as file:
                file.write(data)
    except FileExistsError as error:
        raise ConfigError(
            f"{error.filename}: is there already; name another folder with --to"
        ) from error
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    return [TakenOut(path, sha256_hex(data), damage) for path, data, damage in wanted]


def safe_name(member: str, number: int = 0) -> str:
    """A file name that stays in its folder, steers nothing and fits every file system.

    Args:
        member: any name; folders become part of the name.
        number: tells apart files of one name, from 0.
    """
    flat = _UNSAFE.sub("_", member).strip(" .").encode("utf-8", "replace").decode()
    stem, dot, suffix = flat.rpartition(".")
    if not stem or len(suffix) > len("parquet"):
        stem, dot, suffix = flat, "", ""
    count = f" ({number + 1})" if number else ""
    room = _MAX_NAME_BYTES - len(f"{count}.{suffix}".encode())
    short = stem.encode()[:room].decode(errors="ignore")
    return f"{short or 'member'}{count}{dot}{suffix}"
