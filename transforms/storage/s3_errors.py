"""What boto3 raises, as the storage errors of this project."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own, no subclass of the built-in one
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ResponseStreamingError,
)
from botocore.parsers import ResponseParserError

from schemas.errors import StorageError
from transforms.storage.base import (
    ObjectChangedError,
    ObjectDeniedError,
    ObjectMissingError,
    PassingError,
)

BotoError: TypeAlias = "ClientError | BotoCoreError | ResponseParserError"
BOTO_ERRORS = (ClientError, BotoCoreError, ResponseParserError)


class ConflictError(PassingError):
    """Another write to the same key was under way."""


class ExpiredError(PassingError):
    """The credentials are no longer taken; the chain may hold newer ones."""


class OutOfRangeError(StorageError):
    """The range begins at or after the end of the object."""


class UnsupportedError(StorageError):
    """The store does not know this kind of request."""


class BareError(StorageError):
    """A refusal without a reason: answers to HEAD have no body that could hold one."""


_SKEWED = "RequestTimeTooSkewed"
_KINDS: dict[type[StorageError], frozenset[str]] = {
    ObjectMissingError: frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"}),
    ObjectChangedError: frozenset({"412", "PreconditionFailed"}),
    ObjectDeniedError: frozenset({"AccessDenied", "AllAccessDisabled", "InvalidObjectState"}),
    OutOfRangeError: frozenset({"416", "InvalidRange"}),
    UnsupportedError: frozenset({"501", "NotImplemented"}),
    ConflictError: frozenset({"409", "ConditionalRequestConflict", "OperationAborted"}),
    ExpiredError: frozenset(
        {
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidAccessKeyId",
            "InvalidToken",
            "RequestExpired",
            "TokenRefreshRequired",
        }
    ),
    BareError: frozenset({"301", "307", "400", "403"}),
    PassingError: frozenset(
        {
            _SKEWED,  # a request may be too old because it waited: signed again, it is not
            "BadDigest",  # the body was damaged on its way
            "BandwidthLimitExceeded",
            "IncompleteBody",
            "InternalError",
            "PriorRequestNotComplete",
            "RequestLimitExceeded",
            "RequestThrottled",
            "RequestThrottledException",
            "RequestTimeout",
            "RequestTimeoutException",
            "ServiceUnavailable",
            "SlowDown",
            "Throttling",
            "ThrottlingException",
            "TooManyRequestsException",
            "XAmzContentSHA256Mismatch",
        }
    ),
}
"""Error codes of S3 (API reference, "Error responses") and, for HEAD, bare HTTP statuses."""

_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 509, 520, 522, 524, 529})
_PASSING = (
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    ResponseParserError,  # an answer that was cut on its way
    ResponseStreamingError,
)
_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError)
_GIVE_CREDENTIALS = (
    "; the usual chain of AWS is followed: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "~/.aws/credentials with AWS_PROFILE, or the role of the machine"
)


def translated(error: BotoError, action: str, uri: str, endpoint: str | None) -> StorageError:
    """The storage error that says the same, naming the object and what was tried on it.

    Args:
        error: what boto3 raised.
        action: verb for the message: "read", "write", ...
        uri: the object.
        endpoint: address of an S3-compatible server, or None.
    """
    if isinstance(error, ClientError):
        return _refused(error, action, uri)
    passing = isinstance(error, _PASSING) and _CERTIFICATE not in str(error)
    where = f" at {endpoint}" if endpoint else ""
    hint = _GIVE_CREDENTIALS if isinstance(error, _NO_CREDENTIALS) else ""
    # The text of a botocore error holds addresses, but never credentials.
    text = f"{uri}: cannot {action}{where}: {type(error).__name__}: {error}{hint}"
    return PassingError(text) if passing else StorageError(text)


def _refused(error: ClientError, action: str, uri: str) -> StorageError:
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    text = f"{uri}: cannot {action}: S3 error {code}"
    if code == _SKEWED:
        text += _skew(error)
    for kind, codes in _KINDS.items():
        if code in codes:
            return kind(text)
    passing = status in _PASSING_STATUS or code in map(str, _PASSING_STATUS)
    return PassingError(text) if passing else StorageError(text)


def _skew(error: ClientError) -> str:
    """How far this machine's clock is from the server's, which dates each of its answers."""
    dated = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
    try:
        apart = (datetime.now(UTC) - parsedate_to_datetime(dated)).total_seconds()
    except (TypeError, ValueError):
        return "; set the clock of this machine"
    way = "ahead of" if apart > 0 else "behind"
    return f"; the clock of this machine is {abs(apart):.0f} s {way} the server's: set it"
