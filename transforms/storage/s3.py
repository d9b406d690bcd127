"""Objects on S3 or an S3-compatible server."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, cast

from botocore.parsers import ResponseParserError

from schemas.errors import StorageError
from transforms.storage.base import (
    READ_AHEAD,
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    ObjectStat,
)
from transforms.storage.s3_connection import Connection, current_connection
from transforms.storage.s3_errors import BareError, OutOfRangeError, UnsupportedError
from transforms.storage.s3_reader import Body, Fetch, RangeReader

_COMPARED = 2**20
"""Bytes compared at once."""


@dataclass(frozen=True)
class S3Storage:
    """`Storage` on `s3://bucket/key`, credentials from the usual chain of boto3.

    Every operation is tried again where the trouble may pass (`s3_connection`).

    Attributes:
        endpoint: address of an S3-compatible server, or None for Amazon S3.
        requester_pays: whether we agree to pay for requests where the bucket's owner does not.
    """

    endpoint: str | None = None
    requester_pays: bool = False

    def read(self, uri: str) -> bytes:
        """The whole object, in one request."""
        reply = self._get(uri)
        size, version = int(reply["ContentLength"]), str(reply.get("ETag", ""))
        return RangeReader(self._fetch(uri, reply), uri, size, version).readall()

    def read_range(self, uri: str, offset: int, size: int, version: str = "") -> bytes:
        """`size` bytes from `offset`."""
        if size <= 0:
            return b""
        reader = RangeReader(self._fetch(uri), uri, offset + size, version)
        reader.seek(offset)
        buffer = bytearray(size)
        return bytes(buffer[: reader.readinto(buffer)])

    def open(self, uri: str, version: str = "", read_ahead: int = READ_AHEAD) -> BinaryIO:
        """The object as a seekable file, on one version."""
        status = self.stat(uri)
        if version and status.version != version:
            raise ObjectChangedError(f"{uri}: version is {status.version}, expected {version}")
        raw = RangeReader(self._fetch(uri), uri, status.size, status.version)
        return cast("BinaryIO", io.BufferedReader(raw, read_ahead))

    def stat(self, uri: str) -> ObjectStat:
        """Size and ETag."""
        try:
            return self._head(uri)
        except BareError:
            # A GET says why; where it is that the credentials have expired, new ones are found.
            self._fetch(uri)(0, 0, "").stream.close()
        try:
            return self._head(uri)
        except BareError as error:
            raise ObjectDeniedError(str(error)) from error

    def exists(self, uri: str) -> bool:
        """Whether there is an object."""
        if uri.endswith("/"):
            return False
        try:
            self.stat(uri)
        except ObjectMissingError:
            return False
        return True

    def is_folder(self, uri: str) -> bool:
        """Whether any key starts with `uri` and a slash."""
        return bool(self._page(_folder(uri), MaxKeys=1).get("Contents"))

    def children(self, uri: str) -> list[str]:
        """The first 1000 keys and prefixes directly below."""
        bucket, key = split_uri(_folder(uri))
        page = self._page(_folder(uri), Delimiter="/")
        names = [item["Key"] for item in page.get("Contents", [])]
        names += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
        return sorted(f"s3://{bucket}/{name}" for name in names if name != key)

    def list(self, prefix: str) -> Iterator[ObjectStat]:
        """Every key below, page by page; keys that end in `/` are folder marks, not objects."""
        found: list[ObjectStat] = []
        position: dict[str, str] = {}
        bucket, _ = split_uri(prefix)
        while True:
            page = self._page(_folder(prefix), **position)
            items = (_listed(bucket, item) for item in page.get("Contents", []))
            found += [item for item in items if not item.uri.endswith("/")]
            if not page.get("IsTruncated"):
                break
            position = {"ContinuationToken": page["NextContinuationToken"]}
        # Compatible servers differ in how they order "a/b" and "a.b".
        yield from sorted(found, key=lambda file: file.uri)

    def write_atomic(self, uri: str, data: bytes) -> None:
        """One put: S3 shows the old object or all of the new one."""
        self._put(uri, io.BytesIO(data), "write")

    def create(self, uri: str, data: bytes) -> bool:
        """One conditional put."""
        return self._create(uri, io.BytesIO(data))

    def create_from(self, uri: str, file: io.BufferedIOBase) -> bool:
        """As `create`, streamed; one put takes up to 5 GiB."""
        return self._create(uri, file)

    def delete(self, uri: str) -> None:
        """Remove the object."""
        bucket, key = split_uri(uri)
        self._call(uri, "delete", "delete_object", Bucket=bucket, Key=key)

    def dead_links(self, prefix: str) -> Sequence[str]:  # noqa: ARG002 - S3 has no links
        """None."""
        return ()

    def unfinished(self, prefix: str) -> Sequence[ObjectStat]:
        """Multipart uploads below the prefix; we start none, but another tool may have."""
        bucket, key = split_uri(_folder(prefix))
        found: list[ObjectStat] = []
        position: dict[str, str] = {}
        while True:
            page = self._call(
                prefix, "list", "list_multipart_uploads", Bucket=bucket, Prefix=key, **position
            )
            found += [
                ObjectStat(f"s3://{bucket}/{item['Key']}", 0, str(item["UploadId"]))
                for item in page.get("Uploads", [])
            ]
            if not page.get("IsTruncated"):
                return found
            position = {
                "KeyMarker": page["NextKeyMarker"],
                "UploadIdMarker": page["NextUploadIdMarker"],
            }

    def discard(self, found: ObjectStat) -> None:
        """Abort the upload."""
        bucket, key = split_uri(found.uri)
        self._call(
            found.uri,
            "abort",
            "abort_multipart_upload",
            Bucket=bucket,
            Key=key,
            UploadId=found.version,
        )

    def _create(self, uri: str, body: io.BufferedIOBase) -> bool:
        try:
            return self._put(uri, body, "create", IfNoneMatch="*")
        except UnsupportedError:
            # A store without conditional writes: of two writers at once both may win.
            return not self.exists(uri) and self._put(uri, body, "create")

    def _put(self, uri: str, body: io.BufferedIOBase, action: str, **condition: str) -> bool:
        """Whether `body` is stored now; False where the condition does not hold."""
        bucket, key = split_uri(uri)
        body.seek(0)
        digest = base64.b64encode(hashlib.file_digest(body, _md5).digest()).decode()
        tries = 0

        def put(client: Any) -> None:
            nonlocal tries
            tries += 1
            body.seek(0)
            client.put_object(
                Bucket=bucket, Key=key, Body=body, ContentMD5=digest, **condition, **self._paying
            )

        try:
            self._connection.call(put, action, uri)
        except ObjectChangedError:
            # After a try whose answer was lost, what is there may be what that try wrote.
            return tries > 1 and self._holds(uri, body)
        return True

    def _holds(self, uri: str, body: io.BufferedIOBase) -> bool:
        """Whether the object is, byte for byte, what `body` has."""
        body.seek(0)
        with self.open(uri) as stored:
            while ours := body.read(_COMPARED):
                if stored.read(len(ours)) != ours:
                    return False
            return not stored.read(1)

    def _head(self, uri: str) -> ObjectStat:
        bucket, key = split_uri(uri)
        head = self._call(uri, "stat", "head_object", Bucket=bucket, Key=key)
        return ObjectStat(uri, int(head["ContentLength"]), str(head["ETag"]))

    def _page(self, prefix: str, **options: Any) -> dict[str, Any]:
        bucket, key = split_uri(prefix)
        return self._call(prefix, "list", "list_objects_v2", Bucket=bucket, Prefix=key, **options)

    def _get(self, uri: str, **options: str) -> dict[str, Any]:
        bucket, key = split_uri(uri)
        return self._call(uri, "read", "get_object", Bucket=bucket, Key=key, **options)

    def _fetch(self, uri: str, first: dict[str, Any] | None = None) -> Fetch:
        """Opens ranges of an object; `first` is an answer that is under way and used once."""
        under_way = [first] if first else []

        def fetch(first: int, last: int, version: str) -> Body:
            condition = {"IfMatch": version} if version else {}
            try:
                reply = (
                    under_way.pop()
                    if under_way
                    else self._get(uri, Range=f"bytes={first}-{last}", **condition)
                )
            except OutOfRangeError:
                return Body(io.BytesIO(), 0)
            return Body(reply["Body"], reply.get("ContentLength"))

        return fetch

    def _call(self, uri: str, action: str, method: str, **arguments: Any) -> dict[str, Any]:
        def operation(client: Any) -> dict[str, Any]:
            reply: dict[str, Any] = getattr(client, method)(**arguments, **self._paying)
            if not _PROMISED.get(method, set()) <= reply.keys():
                raise ResponseParserError("the answer was cut in its headers, or is empty")
            return reply

        return self._connection.call(operation, action, uri)

    @property
    def _paying(self) -> dict[str, str]:
        return {"RequestPayer": "requester"} if self.requester_pays else {}

    @property
    def _connection(self) -> Connection:
        return current_connection(self.endpoint)


_md5 = partial(hashlib.md5, usedforsecurity=False)
_PROMISED = {
    "get_object": {"ContentLength"},
    "head_object": {"ContentLength", "ETag"},
    "list_objects_v2": {"IsTruncated"},
}
"""Fields without which an answer is not whole: an empty one must never pass for an empty folder."""


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and key of an `s3://` URI; the key is taken as it is, never percent-decoded.

    Raises:
        StorageError: if there is no bucket.
    """
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not uri.startswith("s3://") or not bucket:
        raise StorageError(f"{uri}: not of the form s3://bucket/key")
    return bucket, key


def _folder(uri: str) -> str:
    return uri if uri.endswith("/") else uri + "/"


def _listed(bucket: str, item: dict[str, Any]) -> ObjectStat:
    return ObjectStat(f"s3://{bucket}/{item['Key']}", int(item["Size"]), str(item["ETag"]))
