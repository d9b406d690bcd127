"""Objects on S3 or an S3-compatible server: the only module that imports boto3."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, cast

from botocore.exceptions import BotoCoreError, ClientError

from schemas.errors import StorageError
from transforms.storage.base import (
    READ_AHEAD,
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    ObjectStat,
)
from transforms.storage.s3_reader import Body, Fetch, RangeReader

_MISSING = {"404", "NoSuchKey", "NoSuchBucket", "NotFound"}
_CHANGED = {"412", "PreconditionFailed"}
_DENIED = {"AccessDenied", "InvalidObjectState"}
_OUT_OF_RANGE = {"416", "InvalidRange"}
_CONFLICT = {"409", "ConditionalRequestConflict", "OperationAborted"}
_CREATE_ATTEMPTS = 5


@dataclass(frozen=True)
class S3Storage:
    """`Storage` on `s3://bucket/key`, credentials from the usual chain of boto3.

    Attributes:
        endpoint: address of an S3-compatible server, or None for Amazon S3.
    """

    endpoint: str | None = None

    def read(self, uri: str) -> bytes:
        """The whole object."""
        with self.open(uri) as file:
            return file.read()

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
        bucket, key = split_uri(uri)
        with self._errors("stat", uri):
            head = self._client.head_object(Bucket=bucket, Key=key)
        return ObjectStat(uri, int(head["ContentLength"]), str(head["ETag"]))

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
        bucket, key = split_uri(_folder(uri))
        with self._errors("list", uri):
            page = self._client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
        return bool(page.get("Contents"))

    def children(self, uri: str) -> list[str]:
        """The first 1000 keys and prefixes directly below."""
        bucket, key = split_uri(_folder(uri))
        with self._errors("list", uri):
            page = self._client.list_objects_v2(Bucket=bucket, Prefix=key, Delimiter="/")
        names = [item["Key"] for item in page.get("Contents", [])]
        names += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
        return sorted(f"s3://{bucket}/{name}" for name in names if name != key)

    def list(self, prefix: str) -> Iterator[ObjectStat]:
        """Every key below, page by page; keys that end in `/` are folder marks, not objects."""
        bucket, key = split_uri(_folder(prefix))
        found = []
        with self._errors("list", prefix):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=bucket, Prefix=key):
                found += [_listed(bucket, item) for item in page.get("Contents", [])]
        # Compatible servers differ in how they order "a/b" and "a.b".
        yield from sorted((f for f in found if not f.uri.endswith("/")), key=lambda f: f.uri)

    def write_atomic(self, uri: str, data: bytes) -> None:
        """One put: S3 shows the old object or all of the new one."""
        bucket, key = split_uri(uri)
        with self._errors("write", uri):
            self._client.put_object(Bucket=bucket, Key=key, Body=data)

    def create(self, uri: str, data: bytes) -> bool:
        """One conditional put. A conflict with another writer is tried again, five times."""
        bucket, key = split_uri(uri)
        for _ in range(_CREATE_ATTEMPTS):
            try:
                with self._errors("create", uri):
                    self._client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
            except ObjectChangedError:
                return False
            except _ConflictError:
                continue
            return True
        raise StorageError(f"{uri}: {_CREATE_ATTEMPTS} conflicting writes, giving up")

    def delete(self, uri: str) -> None:
        """Remove the object."""
        bucket, key = split_uri(uri)
        with self._errors("delete", uri):
            self._client.delete_object(Bucket=bucket, Key=key)

    def _fetch(self, uri: str) -> Fetch:
        bucket, key = split_uri(uri)

        def fetch(first: int, last: int, version: str) -> Body:
            condition = {"IfMatch": version} if version else {}
            span = f"bytes={first}-{last}"
            try:
                with self._errors("read", uri):
                    reply = self._client.get_object(Bucket=bucket, Key=key, Range=span, **condition)
            except _OutOfRangeError:
                return Body(io.BytesIO(), 0)
            return Body(reply["Body"], reply.get("ContentLength"))

        return fetch

    @property
    def _client(self) -> Any:
        return _client(self.endpoint, os.getpid())

    @contextmanager
    def _errors(self, action: str, uri: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise _translated(error, action, uri) from error
        except BotoCoreError as error:
            where = f" at {self.endpoint}" if self.endpoint else ""
            raise StorageError(f"{uri}: cannot {action}{where}: {_name(error)}") from error


class _OutOfRangeError(StorageError):
    """The range begins at or after the end of the object."""


class _ConflictError(StorageError):
    """Another write to the same key was under way."""


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


def _name(error: BotoCoreError) -> str:
    """The kind of a botocore error and its text, which holds addresses but never credentials."""
    return f"{type(error).__name__}: {error}"


def _translated(error: ClientError, action: str, uri: str) -> StorageError:
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    message = f"{uri}: cannot {action}: S3 error {code}"
    kinds: list[tuple[set[str], type[StorageError]]] = [
        (_MISSING, ObjectMissingError),
        (_CHANGED, ObjectChangedError),
        (_DENIED, ObjectDeniedError),
        (_OUT_OF_RANGE, _OutOfRangeError),
        (_CONFLICT, _ConflictError),
    ]
    kind = next((kind for codes, kind in kinds if code in codes), StorageError)
    return kind(message)


@lru_cache(maxsize=8)
def _client(endpoint: str | None, pid: int) -> Any:  # noqa: ARG001 - a forked child needs its own sockets
    """One client per endpoint and process; clients are thread-safe, sessions are not."""
    import boto3
    from botocore.config import Config

    config = Config(
        retries={"mode": "standard", "max_attempts": 5},
        read_timeout=20,
        connect_timeout=5,
        max_pool_connections=32,
        # Older compatible servers refuse the checksum trailers that are the default since 2025.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if endpoint else {},
    )
    session = boto3.session.Session()
    region = session.region_name or "us-east-1"
    return session.client("s3", endpoint_url=endpoint, config=config, region_name=region)
