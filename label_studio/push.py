"""Push review samples: each becomes one task with one prediction, however often this is called.

The server has no unique key and no upsert, reuses task ids on SQLite, answers 201 to imports whose
predictions it lost, and commits requests whose answer never arrived. So nothing is believed: what
exists is looked up by `sample_id`, only what is missing is sent, once, and the report is made from
a last look.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from label_studio.checks import prediction_problems, task_problems
from label_studio.client import ServerSettings, StudioClient, TaskRef, connect
from label_studio.failures import OutcomeUnknownError
from label_studio.images import ImageOf, ScreenImages
from label_studio.project import ensure_assets, ensure_project, show_predictions
from label_studio.tasks import TaskData, prediction, task_data
from schemas.errors import LabelStudioError, PantallaError
from schemas.ids import content_id
from schemas.review import ReviewSample

BATCH = 100
"""Samples in one import; 100 to 500 were measured as the fastest."""

REPAIR_ROUNDS = 3
"""How often predictions that the server lost are sent again within one push."""

Progress = Callable[[int], None]
"""Called with the number of samples just dealt with."""


@dataclass(frozen=True, slots=True)
class PushFailure:
    """One sample that is not on the server as it should be; the next push tries again.

    Attributes:
        reason: `invalid`, `image`, `refused` or `pending` (sent, but not seen on the server).
        detail: what was seen, for a person; holds no task text.
    """

    sample_id: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did; `wanted` = `existing` + `added` + failed before a task existed.

    Attributes:
        wanted: different samples that were to be on the server.
        existing: of these, how many had a task before.
        added: tasks made.
        repaired: tasks that existed without a prediction and got one.
        uploaded: pictures sent.
        duplicates: sample ids with more than one task; nothing is deleted for that.
    """

    project_id: int
    project_url: str
    wanted: int
    existing: int
    added: int
    repaired: int
    uploaded: int
    failed: tuple[PushFailure, ...] = ()
    duplicates: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every wanted sample has its task and its prediction."""
        return not self.failed


def push_samples(
    samples: Sequence[ReviewSample],
    image_of: ImageOf,
    server: ServerSettings,
    *,
    lock_dir: Path | None = None,
    progress: Progress | None = None,
) -> PushReport:
    """Bring `samples` to the review project, in their order; a repeated call adds nothing.

    Args:
        samples: most uncertain first; of several with one `sample_id` the first counts.
        image_of: screen id to the bytes of its picture.
        server: where to push.
        lock_dir: where the lock of this server and project lies; default: the user's cache.
        progress: told as samples are dealt with.

    Raises:
        LabelStudioError: the server cannot be used at all, or another push is running. What was
            sent until then is found by the next push.
    """
    wanted, failed = _checked(samples)
    client = connect(server)
    try:
        with _only_pusher(server, lock_dir):
            project_id = ensure_project(client, server.project)
            images = ScreenImages(client, ensure_assets(client, server.project), image_of)
            pushing = _Push(client, project_id, images, server.settle_waits_s, failed)
            return pushing.run(wanted, server.url, progress or (lambda _: None))
    finally:
        client.close()


def _checked(samples: Sequence[ReviewSample]) -> tuple[list[ReviewSample], list[PushFailure]]:
    """The samples that may be sent, each id once, and what is wrong with the others."""
    unique = {sample.sample_id: sample for sample in reversed(samples)}
    ordered = [unique.pop(sample.sample_id) for sample in samples if sample.sample_id in unique]
    good, failed = [], []
    for sample in ordered:
        problems = task_problems(task_data(sample, image="/data/upload/check"))
        problems += prediction_problems(prediction(sample))
        if problems:
            failed.append(PushFailure(sample.sample_id, "invalid", "; ".join(problems)))
        else:
            good.append(sample)
    return good, failed


@contextmanager
def _only_pusher(server: ServerSettings, lock_dir: Path | None) -> Iterator[None]:
    """Hold the lock of this server and project: two pushers doubled every task when measured."""
    folder = lock_dir or user_cache_path("pantalla") / "push-locks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{content_id([server.url.rstrip('/'), server.project])}.lock"
    try:
        with FileLock(path, timeout=0):
            yield
    except Timeout:
        raise LabelStudioError(
            f"another push to {server.project!r} is running; try again when it is done ({path})"
        ) from None


@dataclass
class _Push:
    """One push while it runs."""

    client: StudioClient
    project_id: int
    images: ScreenImages
    settle_waits_s: tuple[float, ...]
    failed: list[PushFailure]
    refs: dict[str, list[TaskRef]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)

    def run(self, wanted: list[ReviewSample], url: str, progress: Progress) -> PushReport:
        self._look(wanted)
        before = dict(self.refs)
        bare_before = {key for key in before if not self._has_prediction(key)}
        rejected = len(self.failed)
        progress(len(before))
        missing = [sample for sample in wanted if sample.sample_id not in before]
        for batch in _batches(missing):
            self._add(batch)
            progress(len(batch))
        self._repair(wanted)
        if missing or bare_before:
            self._look(wanted)
        show_predictions(self.client, self.project_id)
        return PushReport(
            project_id=self.project_id,
            project_url=f"{url.rstrip('/')}/projects/{self.project_id}/data",
            wanted=len(wanted) + rejected,
            existing=len(before),
            added=len(self.refs.keys() - before.keys()),
            repaired=sum(self._has_prediction(key) for key in bare_before),
            uploaded=self.images.uploaded,
            failed=tuple(self._final_failures(wanted)),
            duplicates=tuple(sorted(key for key, refs in self.refs.items() if len(refs) > 1)),
        )

    def _look(self, samples: Iterable[ReviewSample]) -> None:
        """Refresh `refs` for these samples."""
        found: dict[str, list[TaskRef]] = defaultdict(list)
        for ref in self.client.lookup(self.project_id, [sample.sample_id for sample in samples]):
            found[ref.sample_id].append(ref)
        self.refs.update(found)

    def _has_prediction(self, sample_id: str) -> bool:
        return all(ref.prediction_count > 0 for ref in self.refs.get(sample_id, []))

    def _add(self, batch: list[ReviewSample]) -> None:
        """Import the tasks of a batch whose samples have none, then give them predictions."""
        tasks = [task for task in map(self._task, batch) if task is not None]
        if not tasks:
            return
        try:
            self.client.import_tasks(self.project_id, tasks)
        except OutcomeUnknownError as error:
            self._settle(batch, str(error))
        except LabelStudioError as error:
            self._fail((task["sample_id"] for task in tasks), "refused", str(error))
            return
        self._look(batch)
        self._predict(batch)

    def _task(self, sample: ReviewSample) -> TaskData | None:
        try:
            return task_data(sample, self.images.address(sample.screen_id))
        except OutcomeUnknownError:
            raise  # the server is in trouble; the next picture would only wait as long
        except PantallaError as error:
            self._fail([sample.sample_id], "image", str(error))
        return None

    def _settle(self, batch: list[ReviewSample], why: str) -> None:
        """Wait for tasks that the server may still be writing; they are never sent again here."""
        awaited = {sample.sample_id for sample in batch} - {fail.sample_id for fail in self.failed}
        for pause in self.settle_waits_s:
            time.sleep(pause)
            self._look(batch)
            if awaited <= self.refs.keys():
                return
        self._fail(sorted(awaited - self.refs.keys()), "pending", why)

    def _repair(self, wanted: list[ReviewSample]) -> None:
        """Give a prediction to every task that has none; the server loses them under load."""
        for _ in range(REPAIR_ROUNDS):
            bare = [sample for sample in wanted if not self._has_prediction(sample.sample_id)]
            if not bare:
                return
            for batch in _batches(bare):
                self._look(batch)
                self._predict(batch)
                self._look(batch)

    def _predict(self, batch: list[ReviewSample]) -> None:
        payloads = {
            ref.task_id: prediction(sample)
            for sample in batch
            for ref in self.refs.get(sample.sample_id, [])
            if ref.prediction_count == 0
        }
        if not payloads:
            return
        try:
            self.client.import_predictions(self.project_id, payloads)
        except OutcomeUnknownError:
            # Sent, perhaps kept: wait before anyone looks and decides to send again.
            time.sleep(sum(self.settle_waits_s[:4]))
        except LabelStudioError as error:
            self.refusals.update((sample.sample_id, str(error)) for sample in batch)
        self._look(batch)

    def _fail(self, sample_ids: Iterable[str], reason: str, detail: str) -> None:
        self.failed.extend(PushFailure(sample_id, reason, detail) for sample_id in sample_ids)

    def _final_failures(self, wanted: list[ReviewSample]) -> list[PushFailure]:
        """Failures that the last look confirms, and samples that it finds without a prediction."""
        kept = [fail for fail in self.failed if fail.sample_id not in self.refs]
        named = {fail.sample_id for fail in kept}
        for sample in wanted:
            key = sample.sample_id
            if key in named:
                continue
            if key not in self.refs:
                kept.append(PushFailure(key, "pending", "no task was seen on the server"))
            elif not self._has_prediction(key):
                why = self.refusals.get(key, "its task has no prediction")
                kept.append(PushFailure(key, "pending", why))
        return kept


def _batches(samples: list[ReviewSample]) -> Iterator[list[ReviewSample]]:
    for start in range(0, len(samples), BATCH):
        yield samples[start : start + BATCH]
