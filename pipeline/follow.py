"""Follows a run by the commit records of its dataset: all that comes from other processes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

from pipeline.plan import Plan
from schemas.commits import CommitRecord, commit_from_json
from schemas.errors import StorageError
from transforms.commit import COMMITS, DatasetWriter
from transforms.storage import join_uri, storage_for


def fresh_records(dataset: DatasetWriter, seen: AbstractSet[str]) -> Iterator[CommitRecord]:
    """The records of a dataset whose unit ids are not in `seen`.

    Raises:
        StorageError: if they cannot be listed or read.
    """
    storage = storage_for(dataset.uri, dataset.s3_endpoint)
    for found in storage.list(join_uri(dataset.uri, COMMITS) + "/"):
        if found.uri.rpartition("/")[2].removesuffix(".json") not in seen:
            yield commit_from_json(storage.read(found.uri), found.uri)


class Follower:
    """Tells each unit once, whoever says first that it is committed: this process or the dataset.

    Args:
        dataset: where the records appear.
        done: ids of units that were committed before the run.
        plan: the units of the run.
        told: called for each of them, in one thread at a time.
    """

    def __init__(
        self,
        dataset: DatasetWriter,
        done: Iterable[str],
        plan: Plan,
        told: Callable[[CommitRecord], None],
    ) -> None:
        self._dataset, self._told = dataset, told
        self._seen, self._units = set(done), {unit.unit_id for unit in plan.units}
        self._lock = threading.Lock()

    def tell(self, record: CommitRecord) -> None:
        """A unit is committed."""
        with self._lock:
            if record.unit_id in self._seen:
                return
            self._seen.add(record.unit_id)
            if record.unit_id in self._units:
                self._told(record)

    def look(self) -> None:
        """Tell what is new in the dataset; a store in trouble is asked again later."""
        with self._lock:
            seen = frozenset(self._seen)
        with contextlib.suppress(StorageError):
            for record in fresh_records(self._dataset, seen):
                self.tell(record)

    @contextlib.contextmanager
    def every(self, seconds: float | None) -> Iterator[None]:
        """Look every so often within the block, in another thread, and at its end; None: never."""
        if seconds is None:
            yield
            return
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(seconds):
                self.look()

        thread = threading.Thread(target=follow, name="pantalla-follow", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(seconds)  # a listing that hangs must not keep the job
            self.look()
