"""One connection per store and process: retries with backoff, and credentials read afresh."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from schemas.errors import ConfigError, StorageError
from transforms.storage.base import PassingError
from transforms.storage.s3_errors import BOTO_ERRORS, BareError, ExpiredError, translated

log = logging.getLogger(__name__)
T = TypeVar("T")

ATTEMPTS = 10
"""Tries of one operation, the first included: about 50 s of waiting against a busy store."""

GIVE_UP_SECONDS = 180.0
"""After this long no further try of an operation begins, however few there were."""

FIRST_ATTEMPTS = 5
"""Tries while no request of this process has ever worked: address or credentials may be wrong."""

FIRST_GIVE_UP_SECONDS = 10.0

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 20.0
_READ_TIMEOUT, _CONNECT_TIMEOUT = 20, 5
_POOL = 32


def backoff_seconds(attempt: int) -> float:
    """Seconds to wait after failed attempt number `attempt`, from 1.

    A random share of a span that doubles ("full jitter": Brooker, "Exponential backoff and jitter",
    AWS Architecture Blog, 2015), so that workers that failed together do not come back together.
    """
    span: float = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (attempt - 1))
    return random.uniform(0, span)


class Connection:
    """A boto3 client of one store, remade where its credentials are no longer taken.

    Args:
        endpoint: address of an S3-compatible server, or None for Amazon S3.
    """

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._client: Any = None
        self._worked = False

    def call(self, operation: Callable[[Any], T], action: str, uri: str) -> T:
        """What `operation` gives, tried again while it meets trouble that may pass.

        The number of tries and the time they may take are bounded. `operation` may have taken
        effect although its answer was lost: it must bear being repeated.

        Args:
            operation: a function of the boto3 client.
            action: verb for messages: "read", "write", ...
            uri: for messages.

        Raises:
            StorageError: of the kind that fits, see `s3_errors`.
        """
        started, attempt = time.monotonic(), 0
        while True:
            attempt += 1
            client = None
            try:
                client = self._current()
                result = operation(client)
            except BOTO_ERRORS as error:
                failure = translated(error, action, uri, self._endpoint)
                self._learn(failure, client)
                seconds = time.monotonic() - started
                if not isinstance(failure, PassingError):
                    raise failure from error
                if self._enough(attempt, seconds):
                    tries = f"{attempt} attempts in {seconds:.0f} s"
                    raise type(failure)(f"{failure} (given up after {tries})") from error
            else:
                self._worked = True
                return result
            wait = backoff_seconds(attempt)
            log.info("%s; trying again in %.1f s", failure, wait)
            time.sleep(wait)

    def _learn(self, failure: StorageError, client: Any) -> None:
        """Whether the store is there at all, and that credentials must be read again."""
        if isinstance(failure, ExpiredError):
            with self._lock:
                if self._client is client:
                    self._client = None
        elif not isinstance(failure, PassingError | BareError):
            self._worked = True

    def _enough(self, attempt: int, seconds: float) -> bool:
        if self._worked:
            return attempt >= ATTEMPTS or seconds >= GIVE_UP_SECONDS
        return attempt >= FIRST_ATTEMPTS or seconds >= FIRST_GIVE_UP_SECONDS

    def _current(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _new_client(self._endpoint)
            return self._client


@lru_cache(maxsize=8)
def connection(endpoint: str | None, pid: int) -> Connection:  # noqa: ARG001 - a forked child needs its own sockets
    """The connection of this process to a store; it may be used from several threads."""
    return Connection(endpoint)


def current_connection(endpoint: str | None) -> Connection:
    """As `connection`, for the process that asks."""
    return connection(endpoint, os.getpid())


def _new_client(endpoint: str | None) -> Any:
    """A client of a new session, so that environment, files and roles are looked at again.

    Raises:
        ConfigError: if `endpoint` is no address.
    """
    import boto3
    from botocore.config import Config

    config = Config(
        # All retries are ours: botocore knows fewer reasons, and stops all of them together when
        # a quota is used up.
        retries={"mode": "standard", "total_max_attempts": 1},
        read_timeout=_READ_TIMEOUT,
        connect_timeout=_CONNECT_TIMEOUT,
        max_pool_connections=_POOL,
        # Older compatible servers refuse the checksum trailers that are the default since 2025.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if endpoint else {},
    )
    session = boto3.session.Session()
    region = session.region_name or "us-east-1"
    try:
        return session.client("s3", endpoint_url=endpoint, config=config, region_name=region)
    except ValueError as error:
        raise ConfigError(f"s3_endpoint = {endpoint}: {error}; write http://host:port") from error
