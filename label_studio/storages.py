"""Label Studio's own access to pictures that lie elsewhere: S3 buckets and folders it serves.

A storage of the project is only the right to read; it is never synchronised, so it makes no tasks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from label_studio.client import StudioClient
from label_studio.failures import explained
from schemas.errors import LabelStudioError

LOCAL_ADDRESS = "/data/local-files/?d="
"""What the address of a file under the server's document root begins with; the rest is quoted."""

KEY_ENV = "LABEL_STUDIO_S3_ACCESS_KEY_ID"
SECRET_ENV = "LABEL_STUDIO_S3_SECRET_ACCESS_KEY"  # noqa: S105 - the name of a variable
_PRESIGN_MINUTES = 60
_TITLE = "Pantalla"
_ONCE = {"max_retries": 0}


@dataclass(frozen=True, slots=True)
class ServedImages:
    """How the server reaches pictures by itself.

    Attributes:
        presign: S3 only: browsers load from the bucket by a signed address (needs CORS there);
            otherwise the server passes the picture on and the bucket stays private.
        endpoint: S3 endpoint as the server reaches it, or None for Amazon S3.
        region: S3 region, or None for the server's default.
        local_root: the server's document root for local files, as the server sees it.
    """

    presign: bool = False
    endpoint: str | None = None
    region: str | None = None
    local_root: str | None = None


@dataclass
class Storages:
    """The storages of one project that our pictures need; made as they are needed.

    Attributes:
        notes: what was found changed, for a person.
    """

    client: StudioClient
    project_id: int
    served: ServedImages
    notes: list[str] = field(default_factory=list)
    _covered: set[str] = field(default_factory=set)

    def cover(self, address: str) -> None:
        """Make sure the project may read what lies at `address`.

        Raises:
            LabelStudioError: the server cannot read there.
        """
        where = _container(address)
        if where in self._covered:
            return
        if address.startswith("s3://"):
            self._cover_bucket(where)
        else:
            self._cover_folder(where)
        self._covered.add(where)

    def _cover_bucket(self, bucket: str) -> None:
        with explained("listing S3 storages"):
            found = [
                storage
                for storage in self.client.sdk.import_storage.s3.list(project=self.project_id)
                if storage.bucket == bucket
            ]
        wanted = self._bucket_settings(bucket)
        if not found:
            with explained(f"giving the project read access to the bucket {bucket}"):
                self.client.sdk.import_storage.s3.create(**wanted, request_options=_ONCE)
            return
        for storage in found:
            self._put_back(storage, wanted)

    def _put_back(self, storage: Any, wanted: dict[str, Any]) -> None:
        """The first storage of a bucket serves its pictures, so each must be as ours."""
        if bool(storage.presign) == wanted["presign"]:
            return
        with explained(f"changing how pictures of the bucket {storage.bucket} are served"):
            self.client.sdk.import_storage.s3.update(storage.id, **wanted, request_options=_ONCE)
        self.notes.append(
            f"the storage of the bucket {storage.bucket} had presign = {bool(storage.presign)}: "
            f"changed to {wanted['presign']}"
        )

    def _bucket_settings(self, bucket: str) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "project": self.project_id,
            "title": _TITLE,
            "bucket": bucket,
            "presign": self.served.presign,
            "presign_ttl": _PRESIGN_MINUTES,
            "use_blob_urls": True,
            "s3endpoint": self.served.endpoint,
            "region_name": self.served.region,
            # Without these the server's own chain of credentials is used.
            "aws_access_key_id": os.environ.get(KEY_ENV),
            "aws_secret_access_key": os.environ.get(SECRET_ENV),
        }
        return {name: value for name, value in settings.items() if value is not None}

    def _cover_folder(self, folder: str) -> None:
        if self.served.local_root is None:
            raise LabelStudioError("no document root is known for pictures the server reads itself")
        path = str(PurePosixPath(self.served.local_root) / folder)
        with explained("listing local storages"):
            known = self.client.sdk.import_storage.local.list(project=self.project_id)
        if any(storage.path == path for storage in known):
            return
        with explained(f"giving the project read access to {path}"):
            self.client.sdk.import_storage.local.create(
                project=self.project_id,
                title=_TITLE,
                path=path,
                use_blob_urls=True,
                request_options=_ONCE,
            )


def _container(address: str) -> str:
    """The bucket, or the first folder under the document root: the root itself is refused.

    Raises:
        LabelStudioError: the address is of neither kind.
    """
    if address.startswith("s3://"):
        return address.removeprefix("s3://").partition("/")[0]
    folder, _, name = unquote(address.removeprefix(LOCAL_ADDRESS)).partition("/")
    if not address.startswith(LOCAL_ADDRESS) or not folder or not name:
        raise LabelStudioError("a picture's address is neither s3:// nor a file below a folder")
    return folder
