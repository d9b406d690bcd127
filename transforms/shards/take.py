"""One member of a shard as it lies there, also one that could not be used."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Protocol, cast

from schemas.errors import InputError, StorageError
from schemas.records import Shard, ShardKind, Unit
from transforms.shards.archive import open_archive
from transforms.shards.base import RawScreen
from transforms.shards.index import index_shard
from transforms.shards.listing import list_shards
from transforms.shards.names import readable_name
from transforms.shards.read import read_unit
from transforms.shards.zip_archive import entry_name
from transforms.storage import S3Address, Storage, join_uri, storage_for

_ARCHIVE_ERRORS = (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, ValueError)


class _Members(Protocol):
    """The attribute of `tarfile.TarFile` that its type stub leaves out."""

    members: list[tarfile.TarInfo]


@dataclass(frozen=True, slots=True)
class Taken:
    """What is stored under one name.

    Attributes:
        data: the bytes; of a member that is cut, those before the cut.
        sidecar: what came with it, or None.
    """

    data: bytes
    sidecar: bytes | None = None


def take_member(uri: str, name: str, s3_endpoint: S3Address = None) -> list[Taken]:
    """The bytes stored under `name`: several where the name occurs more than once.

    Args:
        uri: a shard, as tables name it.
        name: a member, as tables name it.
        s3_endpoint: how to reach S3.

    Raises:
        InputError: if there is no such shard.
        StorageError: if the shard holds nothing under this name, or cannot be read.
    """
    shard = _shard(uri, s3_endpoint)
    index = index_shard(shard, s3_endpoint)
    doubtful = any(problem.member == name for problem in index.problems)
    members = tuple(member for member in index.members if member.name == name)
    why = f"holds nothing of the name {name}"
    if members and not doubtful:
        (item,) = read_unit(Unit("", shard, 0, members[:1]), s3_endpoint)
        if isinstance(item, RawScreen):
            return [Taken(item.data, item.sidecar)]
        why = item.detail
    try:
        taken = list(_stored(shard, name, storage_for(uri, s3_endpoint)))
    except _ARCHIVE_ERRORS as error:
        raise StorageError(f"{uri}: {name} cannot be taken out: {error}") from error
    if not taken:
        raise StorageError(f"{uri}: {why}")
    return taken


def _shard(uri: str, s3_endpoint: S3Address) -> Shard:
    for shard in list_shards([uri], s3_endpoint):
        if shard.uri == uri:
            return shard
    raise InputError(f"{uri}: is a folder of shards; name one of them")


def _stored(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    """Everything of that name, whatever it is, without the rules for members."""
    if shard.kind is ShardKind.TAR:
        yield from _in_tar(shard, name, storage)
    elif shard.uri.endswith("/"):
        yield Taken(storage.read(join_uri(shard.uri, name)))
    elif shard.kind is not ShardKind.PARQUET:
        yield from _in_zip(shard, name, storage)


def _in_tar(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    """Found by headers and read by offset, so that of a cut member there is what there is."""
    with open_archive(shard, storage) as archive:
        spans = []
        tar = tarfile.open(  # noqa: SIM115 - closing it is the archive's business
            fileobj=cast("BinaryIO", archive), mode="r:", errors="surrogateescape", encoding="utf-8"
        )
        with suppress(*_ARCHIVE_ERRORS):  # the end of a damaged archive
            while (info := tar.next()) is not None:
                cast("_Members", tar).members.clear()
                if info.isreg() and readable_name(info.name)[0] == name:
                    spans.append((info.offset_data, info.size))
        for offset, size in spans:
            yield Taken(archive.slice(offset, size))


def _in_zip(shard: Shard, name: str, storage: Storage) -> Iterator[Taken]:
    with storage.open(shard.uri, shard.version) as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if entry_name(info)[0] == name:
                yield Taken(archive.read(info))
