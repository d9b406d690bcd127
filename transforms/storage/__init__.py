"""Files and objects behind one small protocol: local paths and `s3://` URIs."""

from transforms.storage.base import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    ObjectStat,
    PassingError,
    S3Access,
    S3Address,
    Storage,
)
from transforms.storage.open import join_uri, normalize_uri, parent_uri, storage_for

__all__ = [
    "ObjectChangedError",
    "ObjectDeniedError",
    "ObjectMissingError",
    "ObjectStat",
    "PassingError",
    "S3Access",
    "S3Address",
    "Storage",
    "join_uri",
    "normalize_uri",
    "parent_uri",
    "storage_for",
]
