"""What the rest of the project may ask of a file store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import BinaryIO, Protocol, TypeAlias

from schemas.errors import StorageError

READ_AHEAD = 8 * 2**20
"""Bytes fetched at once when an object is read from front to back."""

HEADER_READ_AHEAD = 64 * 2**10
"""Bytes fetched at once when only headers are wanted."""

TEMP_PREFIX = ".tmp-"
"""Names of files that are being written; they are never listed."""


class PassingError(StorageError):
    """Trouble of the store or of the way to it that may be gone in a moment, or once there is room.

    The same job, started again later, goes on.
    """


class ObjectMissingError(StorageError):
    """There is nothing at this URI."""


class ObjectChangedError(StorageError):
    """The object is no longer the version that was asked for."""


class ObjectDeniedError(StorageError):
    """This one object may not be read; others may well be readable."""


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """A file or object as it is listed.

    Attributes:
        uri: absolute local path or `s3://bucket/key`, raw: no percent-encoding.
        size: bytes.
        version: ETag on S3, as the server writes it; empty on a local disk.
        modified: when a local file was last written, ns since 1970; 0 on S3.
    """

    uri: str
    size: int
    version: str = ""
    modified: int = 0


@dataclass(frozen=True, slots=True)
class S3Access:
    """How to reach S3; credentials are not part of it.

    Attributes:
        endpoint: address of an S3-compatible server, or None for Amazon S3.
        requester_pays: whether we agree to pay for requests where the bucket's owner does not.
    """

    endpoint: str | None = None
    requester_pays: bool = False


S3Address: TypeAlias = "S3Access | str | None"
"""`S3Access`, or its endpoint alone."""


class Storage(Protocol):
    """Reads and writes whole files and byte ranges. Picklable; usable from several threads.

    Every method raises `StorageError` naming the URI; the subclasses of this module where they
    fit, so that a caller can tell "this object" from "the store".
    """

    def read(self, uri: str) -> bytes:
        """The whole content."""

    def read_range(self, uri: str, offset: int, size: int, version: str = "") -> bytes:
        """`size` bytes from `offset`; fewer only at the end of the object.

        Args:
            uri: the object.
            offset: first byte wanted, from 0.
            size: bytes wanted.
            version: where given, the version the object must still have.

        Raises:
            ObjectChangedError: if it has another one.
        """

    def open(self, uri: str, version: str = "", read_ahead: int = READ_AHEAD) -> BinaryIO:
        """A seekable binary file. Remote content is fetched by ranges of `read_ahead` bytes.

        A connection that is cut or stalls is resumed where it stopped, a bounded number of times,
        and always on the same version of the object.
        """

    def stat(self, uri: str) -> ObjectStat:
        """Size and version.

        Raises:
            ObjectMissingError: if there is no file or object (a folder is none).
        """

    def exists(self, uri: str) -> bool:
        """Whether there is a file or object at `uri` (a folder is none)."""

    def is_folder(self, uri: str) -> bool:
        """Whether `uri` is a folder, or on S3 a prefix that holds at least one key."""

    def children(self, uri: str) -> list[str]:
        """URIs directly in a folder, sorted; folders end in `/`. Remote: the first 1000."""

    def list(self, prefix: str) -> Iterator[ObjectStat]:
        """Every file below the folder `prefix`, at any depth, sorted by URI.

        Files that are still being written (`TEMP_PREFIX`) are left out; a missing folder is empty.
        """

    def dead_links(self, prefix: str) -> Sequence[str]:
        """URIs of links below the folder `prefix` that lead nowhere, sorted; none on S3."""

    def write_atomic(self, uri: str, data: bytes) -> None:
        """Write or replace the object; readers see the old content or all of the new."""

    def create(self, uri: str, data: bytes) -> bool:
        """Write the object only if there is none; readers see nothing or all of it.

        Returns:
            False when it was there already, also when another writer won the race.
        """

    def create_from(self, uri: str, file: BufferedIOBase) -> bool:
        """As `create`, with all that a seekable file holds, which need not fit in memory."""

    def delete(self, uri: str) -> None:
        """Remove the object; nothing happens when there is none."""

    def unfinished(self, prefix: str) -> Sequence[ObjectStat]:
        """What writers that were killed left below the folder `prefix`, and no reader sees.

        Locally temporary files, on S3 multipart uploads (`version` is the upload's id). A writer
        that is at work has such files too: only the caller can know that there is none.
        """

    def discard(self, found: ObjectStat) -> None:
        """Remove what `unfinished` named."""
