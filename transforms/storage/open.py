"""URIs: local absolute paths (no scheme) and `s3://bucket/key`, always raw."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from schemas.errors import ConfigError
from transforms.storage.base import S3Access, S3Address, Storage
from transforms.storage.local import LocalStorage

S3_SCHEME = "s3://"
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_ACCESS_POINT = re.compile(r"^(s3://arn:[^/]*:accesspoint)/")


def storage_for(uri: str, s3: S3Address = None) -> Storage:
    """The store that holds `uri`.

    Args:
        uri: local path, `file://` URL or `s3://bucket/key`.
        s3: how to reach S3, or the address of an S3-compatible server; None is Amazon S3.

    Raises:
        ConfigError: if the scheme is another one.
    """
    if uri.startswith(S3_SCHEME):
        from transforms.storage.s3 import S3Storage

        access = s3 if isinstance(s3, S3Access) else S3Access(s3)
        return S3Storage(access.endpoint, access.requester_pays)
    normalize_uri(uri)
    return LocalStorage()


def normalize_uri(uri: str) -> str:
    """`uri` as the project writes it: an absolute local path, or `s3://bucket/key` unchanged.

    A trailing `/` is kept: it marks a folder. `file://` URLs are percent-decoded. The ARN of an
    access point stands for a bucket, in the form that has no slash.

    Raises:
        ConfigError: if the scheme is neither `s3` nor `file`.
    """
    if uri.startswith(S3_SCHEME):
        return _ACCESS_POINT.sub(r"\1:", uri)
    scheme = _SCHEME.match(uri)
    if scheme and scheme[1].lower() == "file":
        rest = uri[len("file://") :]
        return normalize_uri(unquote(rest.removeprefix("localhost")))
    if scheme:
        raise ConfigError(f"{uri}: {scheme[1]}:// is not supported; use a local path or s3://")
    path = os.path.abspath(os.path.expanduser(uri))  # noqa: PTH100, PTH111 - Path drops a final "/"
    return path + "/" if uri.endswith("/") and path != "/" else path


def join_uri(base: str, *names: str) -> str:
    """`base` and `names` joined with single slashes; names may themselves hold slashes."""
    return "/".join([base.rstrip("/"), *names]) if names else base


def parent_uri(uri: str) -> str:
    """The folder that holds `uri`, ending in `/`."""
    return uri.rstrip("/").rpartition("/")[0] + "/"
