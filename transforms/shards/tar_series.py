"""Writes tars of at most a given size, the same bytes for the same content, each whole or absent.

A sample's files lie together, as WebDataset wants it. Names that are short and ASCII have plain
ustar headers, others PAX ones. Owner, time and mode are fixed, so that packing twice gives the same
bytes, and a pack that was killed can be done again over what it left.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.errors import ConfigError
from transforms.storage import Storage, join_uri

_BLOCK = tarfile.BLOCKSIZE
_END = 2 * _BLOCK
_MODE = 0o644
_COMPARED = 2**20


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file to be packed; `name` is its path in the tar."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class WrittenTar:
    """A tar of the series.

    Attributes:
        was_there: whether it stood there already, byte for byte.
    """

    uri: str
    byte_size: int
    files: int
    was_there: bool


def tar_size(content: int) -> int:
    """Bytes of a tar whose members and headers take `content`: end mark and padding added."""
    return -(-(content + _END) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


class TarSeries:
    """Tars `<stem>-000000.tar`, `<stem>-000001.tar`, ... in one folder.

    Args:
        folder: local folder or `s3://bucket/prefix`.
        stem: beginning of each name.
        limit: bytes that no tar exceeds, unless one sample alone does.
        storage: where `folder` is.
        scratch: an empty file for the tar that is being written.
        on_tar: told of each tar when it stands.
    """

    def __init__(
        self,
        folder: str,
        stem: str,
        limit: int,
        storage: Storage,
        scratch: io.BufferedRandom,
        on_tar: Callable[[WrittenTar], None],
    ) -> None:
        self._folder = folder
        self._stem = stem
        self._limit = limit
        self._storage = storage
        self._on_tar = on_tar
        self._scratch = scratch
        self._tar: tarfile.TarFile | None = None
        self._files = 0
        self.written: list[WrittenTar] = []

    def add(self, sample: Sequence[PackedFile]) -> None:
        """Put a sample's files together in the current tar, or in a new one where it is full.

        Raises:
            ConfigError: if another file stands where a full tar must go.
            StorageError: if it cannot be written there.
        """
        entries = [(_info(file), file.data) for file in sample]
        size = sum(_stored(info) for info, _ in entries)
        if self._tar is not None and tar_size(self._tar.offset + size) > self._limit:
            self.finish()
        if self._tar is None:
            self._tar = tarfile.open(  # noqa: SIM115 - finish closes it
                fileobj=self._scratch, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8"
            )
        for info, data in entries:
            self._tar.addfile(info, io.BytesIO(data))
        self._files += len(entries)

    def finish(self) -> None:
        """Close the current tar and give it its name; nothing happens when there is none.

        Raises:
            ConfigError: if another file stands there.
            StorageError: if it cannot be written there.
        """
        if self._tar is None:
            return
        self._tar.close()
        uri = join_uri(self._folder, f"{self._stem}-{len(self.written):06d}.tar")
        is_new = self._storage.create_from(uri, self._scratch)
        if not is_new and not self._is_same(uri):
            raise ConfigError(
                f"{uri}: is there already and holds something else; nothing is overwritten: "
                "pack into another folder"
            )
        size = self._scratch.seek(0, io.SEEK_END)
        self._scratch.seek(0)
        self._scratch.truncate()
        self.written.append(WrittenTar(uri, size, self._files, not is_new))
        self._on_tar(self.written[-1])
        self._tar, self._files = None, 0

    def _is_same(self, uri: str) -> bool:
        self._scratch.seek(0)
        with self._storage.open(uri) as theirs:
            while piece := self._scratch.read(_COMPARED):
                if theirs.read(len(piece)) != piece:
                    return False
            return not theirs.read(1)


def _info(file: PackedFile) -> tarfile.TarInfo:
    info = tarfile.TarInfo(file.name)
    info.size = len(file.data)
    info.mode = _MODE
    return info


def _stored(info: tarfile.TarInfo) -> int:
    header = len(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
    return header + -(-info.size // _BLOCK) * _BLOCK
