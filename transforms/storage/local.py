"""Files on a local or mounted disk."""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import stat as stat_module
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from schemas.errors import StorageError
from transforms.storage.base import (
    READ_AHEAD,
    TEMP_PREFIX,
    ObjectDeniedError,
    ObjectMissingError,
    ObjectStat,
    PassingError,
)

_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN}
"""No room, and what mounted disks say when their server is away."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""What file systems without hard links say: FAT, some network and bucket mounts."""

_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""What a link says that is followed to no file and no folder."""

_MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_COPIED = 2**20
"""Bytes copied at once."""


@dataclass(frozen=True)
class LocalStorage:
    """`Storage` on absolute paths. Versions are empty: a changed file is noticed by its size."""

    def read(self, uri: str) -> bytes:
        """The whole file."""
        with _errors("read", uri):
            return _path(uri).read_bytes()

    def read_range(self, uri: str, offset: int, size: int, version: str = "") -> bytes:  # noqa: ARG002 - local files have no version
        """`size` bytes from `offset`."""
        with _errors("read", uri), _path(uri).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def open(self, uri: str, version: str = "", read_ahead: int = READ_AHEAD) -> BinaryIO:  # noqa: ARG002 - the disk cache does it
        """The file, open for reading."""
        with _errors("open", uri):
            return _path(uri).open("rb")

    def stat(self, uri: str) -> ObjectStat:
        """Size of the file."""
        with _errors("stat", uri):
            status = _path(uri).stat()
        if not stat_module.S_ISREG(status.st_mode):
            raise ObjectMissingError(f"{uri}: not a regular file")
        return ObjectStat(uri, status.st_size, modified=status.st_mtime_ns)

    def exists(self, uri: str) -> bool:
        """Whether there is a regular file."""
        with _errors("stat", uri):
            return _path(uri).is_file()

    def is_folder(self, uri: str) -> bool:
        """Whether there is a folder."""
        with _errors("stat", uri):
            return _path(uri).is_dir()

    def children(self, uri: str) -> list[str]:
        """Files and folders directly in the folder."""
        with _errors("list", uri), os.scandir(_path(uri)) as entries:
            return sorted(e.path + "/" if e.is_dir() else e.path for e in entries)

    def list(self, prefix: str) -> Iterator[ObjectStat]:
        """Every regular file below the folder; links to folders are followed, once each."""
        if not self.is_folder(prefix):
            return
        with _errors("list", prefix):
            walked = _walk(prefix.rstrip("/") or "/", set())
            files = [entry for entry in walked if not _leads_nowhere(entry) and entry.is_file()]
            found = [ObjectStat(entry.path, entry.stat().st_size) for entry in files]
        yield from sorted(found, key=lambda file: file.uri)

    def dead_links(self, prefix: str) -> Sequence[str]:
        """Links below the folder to what is not there, or to themselves."""
        if not self.is_folder(prefix):
            return []
        with _errors("list", prefix):
            walked = _walk(prefix.rstrip("/") or "/", set())
            return sorted(entry.path for entry in walked if _leads_nowhere(entry))

    def write_atomic(self, uri: str, data: bytes) -> None:
        """Write beside the target, flush to disk, rename over it, flush the folder."""
        with _errors("write", uri):
            temp = _write_temp(_path(uri), io.BytesIO(data))
            try:
                temp.replace(_path(uri))
            except OSError:
                temp.unlink(missing_ok=True)
                raise
            _flush_folder(_path(uri).parent)

    def create(self, uri: str, data: bytes) -> bool:
        """As `write_atomic`, but a hard link gives the name, which fails where it is taken."""
        with _errors("create", uri):
            return _link(_write_temp(_path(uri), io.BytesIO(data)), _path(uri))

    def create_from(self, uri: str, file: io.BufferedIOBase) -> bool:
        """As `create`, copied piece by piece."""
        with _errors("create", uri):
            file.seek(0)
            return _link(_write_temp(_path(uri), file), _path(uri))

    def delete(self, uri: str) -> None:
        """Remove the file."""
        with _errors("delete", uri):
            _path(uri).unlink(missing_ok=True)

    def unfinished(self, prefix: str) -> Sequence[ObjectStat]:
        """Temporary files below the folder."""
        with _errors("list", prefix):
            temps = sorted(_path(prefix).rglob(f"{TEMP_PREFIX}*"))
            return [ObjectStat(str(temp), temp.stat().st_size) for temp in temps if temp.is_file()]

    def discard(self, found: ObjectStat) -> None:
        """Remove the temporary file."""
        self.delete(found.uri)


def _path(uri: str) -> Path:
    return Path(uri)


@contextmanager
def _errors(action: str, uri: str) -> Iterator[None]:
    try:
        yield
    except _MISSING as error:
        raise ObjectMissingError(f"{uri}: cannot {action}: {error.strerror}") from error
    except PermissionError as error:
        raise ObjectDeniedError(f"{uri}: cannot {action}: {error.strerror}") from error
    except OSError as error:
        kind = PassingError if error.errno in _PASSING else StorageError
        raise kind(f"{uri}: cannot {action}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL byte in the path
        raise StorageError(f"{uri}: cannot {action}: {error}") from error


def _walk(folder: str, seen: set[tuple[int, int]]) -> Iterator[os.DirEntry[str]]:
    """Everything below the folder but folders and unfinished files."""
    status = Path(folder).stat()
    if (status.st_dev, status.st_ino) in seen:
        return
    seen.add((status.st_dev, status.st_ino))
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _leads_nowhere(entry) and entry.is_dir():
                yield from _walk(entry.path, seen)
            elif not entry.name.startswith(TEMP_PREFIX):
                yield entry


def _leads_nowhere(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a link to what is not there, or to itself, directly or through others."""
    if not entry.is_symlink():
        return False
    try:
        entry.stat()
    except OSError as error:
        if error.errno in _NOWHERE:
            return True
        raise
    return False


def _link(temp: Path, target: Path) -> bool:
    """Give a finished file its name, unless that is taken; the temporary name is gone after it."""
    try:
        os.link(temp, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Of two writers at once both may win here, and the second one's file stands.
        if target.exists():
            return False
        temp.replace(target)
    finally:
        temp.unlink(missing_ok=True)
    _flush_folder(target.parent)
    return True


def _write_temp(target: Path, source: io.BufferedIOBase) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = target.parent / f"{TEMP_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
    try:
        with temp.open("xb") as file:
            shutil.copyfileobj(source, file, _COPIED)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temp.unlink(missing_ok=True)
        raise
    return temp


def _flush_folder(folder: Path) -> None:
    """Make a rename survive a power cut; some mounted file systems refuse, which is no error."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
