"""What a shard stores under one name, without the rules for members; of what is damaged, the rest.

A member that could not be used is looked at as it lies there, so nothing here asks whether it is an
image, whether its checksum fits, or whether all of it is there.
"""

from __future__ import annotations

import copy
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from lzma import LZMAError
from typing import BinaryIO, Protocol, cast

from schemas.errors import MemberRejected
from schemas.records import Shard, ShardKind
from transforms.shards.archive import STREAM_ERRORS, open_archive
from transforms.shards.names import readable_name
from transforms.shards.zip_archive import entry_name
from transforms.storage import Storage

_DAMAGE = (
    *STREAM_ERRORS,
    tarfile.TarError,
    zipfile.BadZipFile,
    LZMAError,
    ValueError,  # numbers in a header that cannot be
    NotImplementedError,  # a compression that `zipfile` does not read
    RuntimeError,  # an entry that is encrypted
)
"""What reading a damaged archive raises, or one of a kind that is not read."""

_PIECE = 256
"""Bytes read at once: where a stream breaks, at most so many before the break are lost."""


class _Members(Protocol):
    """The attribute of `tarfile.TarFile` that its type stub leaves out."""

    members: list[tarfile.TarInfo]


@dataclass(frozen=True, slots=True)
class Taken:
    """What is stored under one name.

    Attributes:
        data: the bytes; of a member that is cut or damaged, those before the damage.
        sidecar: what came with it, or None.
        damage: what is wrong with `data`, or empty.
    """

    data: bytes
    sidecar: bytes | None = None
    damage: str = ""


def stored_under(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    """Everything of that name, in the order of the shard; nothing of a Parquet file.

    Args:
        shard: of any kind.
        name: as tables name it: valid Unicode, whatever the shard has.
        storage: where the shard is.

    Raises:
        StorageError: if the store does not answer, or refuses this file.
        OSError: with its number, if a disk is in trouble.
    """
    find = {
        ShardKind.TAR: _in_tar,
        ShardKind.ZIP: _in_zip,
        ShardKind.FOLDER: _in_folder,
        ShardKind.WEBVOYAGER: _in_folder,
    }.get(shard.kind)
    if find is None:
        return
    try:
        yield from find(shard, name, storage)
    except (MemberRejected, *_DAMAGE) as error:
        _raise_trouble(error)


def _raise_trouble(error: BaseException) -> None:
    """Go on after damage of the data, which has no error number; raise what a disk says."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error


def _in_folder(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    """Found by listing: a name that is not UTF-8 stands in tables in another spelling."""
    for file in storage.list(shard.uri):
        if readable_name(file.uri[len(shard.uri) :])[0] == name:
            yield Taken(storage.read(file.uri))


def _in_tar(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    """Found by headers and read by offset, so that of a cut member there is what there is."""
    spans = []
    with open_archive(shard, storage) as archive, suppress(*_DAMAGE):  # it may end in damage
        tar = tarfile.open(  # noqa: SIM115 - closing it is the archive's business
            fileobj=cast("BinaryIO", archive), mode="r:", errors="surrogateescape", encoding="utf-8"
        )
        while (info := tar.next()) is not None:
            cast("_Members", tar).members.clear()
            if info.isreg() and readable_name(info.name)[0] == name:
                spans.append((info.offset_data, info.size))
    for offset, size in spans:
        with open_archive(shard, storage) as archive:  # one that met its end cannot go back
            archive.seek(offset)
            yield _until_damage(archive.read_some, size)


def _in_zip(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    with storage.open(shard.uri, shard.version) as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if entry_name(info)[0] != name:
                continue
            bare = copy.copy(info)
            del bare.CRC  # `zipfile` then checks none, and gives the last bytes as well
            with suppress(zipfile.BadZipFile, NotImplementedError, RuntimeError):
                with archive.open(bare) as entry:
                    taken = _until_damage(cast("zipfile.ZipExtFile", entry).read1, info.file_size)
                yield taken if taken.damage else _checked(taken, info.CRC)


def _checked(taken: Taken, crc: int) -> Taken:
    if zlib.crc32(taken.data) == crc:
        return taken
    return Taken(taken.data, damage="the checksum (CRC-32) in the zip is that of other bytes")


def _until_damage(read: Callable[[int], bytes], size: int) -> Taken:
    """Up to `size` bytes, as many as there are before the stream ends or breaks."""
    data = bytearray()
    why = "the archive is shorter"
    try:
        while len(data) < size and (piece := read(min(_PIECE, size - len(data)))):
            data += piece
    except _DAMAGE as error:
        _raise_trouble(error)
        why = f"{type(error).__name__}: {error}"
    damage = "" if len(data) == size else f"{len(data)} of {size} bytes: {why}"
    return Taken(bytes(data), damage=damage)
