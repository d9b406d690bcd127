"""Commit records as JSON, strictly, both ways."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from schemas.errors import DatasetError
from schemas.records import CommitRecord


def commit_to_json(record: CommitRecord) -> bytes:
    """One commit record as indented UTF-8 JSON; `reused` is memory only and left out."""
    return _adapter().dump_json(record, indent=1, exclude={"reused"})


def commit_from_json(data: bytes, uri: str) -> CommitRecord:
    """Read a commit record.

    Args:
        data: the file's bytes.
        uri: where it came from, for the error.

    Raises:
        DatasetError: if it is not exactly a commit record.
    """
    try:
        return _adapter().validate_json(data)
    except ValidationError as error:
        raise DatasetError(f"{uri}: not a commit record: {error}") from error


def _adapter() -> TypeAdapter[CommitRecord]:
    return TypeAdapter(CommitRecord)
