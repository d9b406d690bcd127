"""What is remembered of an engine's troubles beyond the process that had them."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from schemas.codes import RejectReason
from schemas.errors import StorageError
from schemas.ids import sha256_hex
from schemas.records import Answer
from transforms.commit import RUN
from transforms.storage import join_uri, storage_for
from transforms.storage.base import ObjectMissingError

log = logging.getLogger(__name__)


CULPRITS, SUSPECTS = "culprits", "suspects"


def verdict(what: str) -> str:
    """What is said of a culprit, of which `what` was seen when it was alone in the engine."""
    return f"the engine does not survive this request, not even alone: {what}"


def convicted(request_id: str, detail: str) -> Answer:
    """The answer to a request that is never asked again."""
    return Answer(request_id, error_reason=RejectReason.ENGINE_KILLER, error_detail=detail)


class Trouble(Protocol):
    """Remembers which requests killed an engine, and which may have."""

    def culprits(self) -> dict[str, str]:
        """Requests that are known to kill the engine, each with what happened."""

    def suspects(self) -> list[frozenset[str]]:
        """Requests that were together in an engine when it died, of runs that did not find out."""

    def suspect(self, request_ids: Iterable[str]) -> None:
        """These were in the engine when it died; replaces what this process suspected before."""

    def convict(self, request_id: str, detail: str) -> None:
        """This one kills the engine, every time."""

    def settle(self, request_ids: Iterable[str]) -> None:
        """Nothing is suspected of these any more."""


@dataclass(slots=True)
class ForgetfulTrouble:
    """Remembers nothing: for engines without a dataset."""

    def culprits(self) -> dict[str, str]:
        """None."""
        return {}

    def suspects(self) -> list[frozenset[str]]:
        """None."""
        return []

    def suspect(self, request_ids: Iterable[str]) -> None:
        """Forgets it."""

    def convict(self, request_id: str, detail: str) -> None:
        """Forgets it."""

    def settle(self, request_ids: Iterable[str]) -> None:
        """Nothing to do."""


@dataclass(slots=True)
class TroubleFiles:
    """Keeps one small file per culprit and per set of suspects below a dataset's `_run/`.

    Several jobs may share the dataset: each file is written whole and belongs to one finding. A
    store in trouble must not stop the engine's repair, so a file that cannot be written is only
    warned about: the next run then finds out anew.

    Attributes:
        uri: the dataset.
    """

    uri: str
    s3_endpoint: str | None = None
    _own: str | None = None
    _open: dict[str, set[str]] = field(default_factory=dict)

    def culprits(self) -> dict[str, str]:
        """Requests that are known to kill the engine, each with what happened.

        Raises:
            StorageError: if the dataset cannot be read.
        """
        found = (json.loads(data) for _, data in self._files(CULPRITS))
        return {entry["sample_id"]: entry["detail"] for entry in found}

    def suspects(self) -> list[frozenset[str]]:
        """Sets of requests that earlier runs suspected and did not clear.

        Raises:
            StorageError: if the dataset cannot be read.
        """
        self._open = {
            uri: set(json.loads(data)["sample_ids"]) for uri, data in self._files(SUSPECTS)
        }
        return [frozenset(ids) for ids in self._open.values()]

    def suspect(self, request_ids: Iterable[str]) -> None:
        """Write the set down; the one this process wrote before is gone then."""
        ids = sorted(request_ids)
        uri = self._uri(SUSPECTS, sha256_hex("\n".join(ids).encode())[:32])
        before, self._own = self._own, uri
        self._open[uri] = set(ids)
        self._write(uri, {"sample_ids": ids})
        if before is not None and before != uri:
            self._drop(before)

    def convict(self, request_id: str, detail: str) -> None:
        """Write the culprit down: no later run of this dataset asks it again."""
        self._write(self._uri(CULPRITS, request_id), {"sample_id": request_id, "detail": detail})
        self.settle([request_id])

    def settle(self, request_ids: Iterable[str]) -> None:
        """Remove the sets of which nothing is left."""
        for request_id in request_ids:
            for uri in [uri for uri, ids in self._open.items() if request_id in ids]:
                self._open[uri].discard(request_id)
                if not self._open[uri]:
                    self._drop(uri)

    def _files(self, kind: str) -> list[tuple[str, bytes]]:
        storage = storage_for(self.uri, self.s3_endpoint)
        found: list[tuple[str, bytes]] = []
        for entry in storage.list(join_uri(self.uri, RUN, kind) + "/"):
            with contextlib.suppress(ObjectMissingError):  # another job has just dropped it
                found.append((entry.uri, storage.read(entry.uri)))
        return found

    def _uri(self, kind: str, name: str) -> str:
        return join_uri(self.uri, RUN, kind, f"{name}.json")

    def _write(self, uri: str, content: dict[str, str] | dict[str, list[str]]) -> None:
        try:
            data = json.dumps(content, ensure_ascii=False, indent=1).encode()
            storage_for(self.uri, self.s3_endpoint).write_atomic(uri, data)
        except StorageError as error:
            log.warning("what the engine did cannot be remembered: %s", error)

    def _drop(self, uri: str) -> None:
        self._open.pop(uri, None)
        self._own = None if self._own == uri else self._own
        try:
            storage_for(self.uri, self.s3_endpoint).delete(uri)
        except StorageError as error:
            log.warning("%s stays behind, it only costs time: %s", uri, error)
