"""One push while it runs: look, send what is missing, look again, repair, tend what is there."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from label_studio.client import StudioClient, TaskRef
from label_studio.failures import OutcomeUnknownError, RequestRefusedError
from label_studio.images import ScreenImages, UncoveredError
from label_studio.tasks import PredictionPayload, TaskData, prediction, task_data
from label_studio.words import Variant
from schemas.errors import LabelStudioError, PantallaError
from schemas.ids import unit_draw
from schemas.review import ReviewSample

Row = TypeVar("Row")

BATCH = 100
"""Samples in one import; 100 to 500 were measured as the fastest."""

MAX_BODY_BYTES = 4 * 2**20
"""A request is cut before this: servers behind a proxy often refuse more."""

REPAIR_ROUNDS = 3
"""How often predictions that the server lost are sent again within one push."""


@dataclass(frozen=True, slots=True)
class PushFailure:
    """One sample that is not on the server as it should be; the next push tries again.

    Attributes:
        reason: `invalid`, `image`, `masks` (what to hide is not known), `refused`, or `pending`
            (sent, but not seen on the server).
        detail: what was seen, for a person; holds no task text.
    """

    sample_id: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """Tasks that two or more people answer, so that their agreement is known.

    Attributes:
        share: of the samples, drawn by sample id.
        answers: how many people answer a task that was drawn.
    """

    share: float = 0.0
    answers: int = 2

    def wanted(self, sample_id: str) -> int:
        """The answers a sample's task waits for."""
        return self.answers if unit_draw(sample_id, "overlap") < self.share else 1


@dataclass
class Pushing:
    """One push while it runs.

    Attributes:
        still_ours: called before every write; raises when another push has taken over.
        refs: tasks on the server by sample id, as of the last look.
        stalled: why nothing more is sent, once the server has stopped answering.
    """

    client: StudioClient
    project_id: int
    images: ScreenImages
    settle_waits_s: tuple[float, ...]
    variant: Variant
    overlap: Overlap
    still_ours: Callable[[], None]
    failed: list[PushFailure]
    refs: dict[str, list[TaskRef]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    refreshed: int = 0
    stalled: str = ""

    def look(self, samples: Iterable[ReviewSample]) -> None:
        """Refresh `refs` for these samples."""
        found: dict[str, list[TaskRef]] = defaultdict(list)
        for ref in self.client.lookup(self.project_id, [sample.sample_id for sample in samples]):
            found[ref.sample_id].append(ref)
        self.refs.update(found)

    def has_prediction(self, sample_id: str) -> bool:
        """Whether every task of a sample has one."""
        return all(ref.prediction_count > 0 for ref in self.refs.get(sample_id, []))

    def add(self, batch: Sequence[ReviewSample]) -> None:
        """Import the tasks of a batch whose samples have none, then give them predictions."""
        if self.stalled:
            self._fail((sample.sample_id for sample in batch), "pending", self.stalled)
            return
        tasks = [task for task in map(self._task, batch) if task is not None]
        for part in sized(tasks, lambda task: len(json.dumps(task))):
            self._import(part, batch)
        self.look(batch)
        self.predict(batch)
        self.tend(batch)

    def _task(self, sample: ReviewSample) -> TaskData | None:
        try:
            return task_data(sample, self.images.address(sample.screen_id), self.variant)
        except OutcomeUnknownError:
            raise  # the server is in trouble; the next picture would only wait as long
        except UncoveredError as error:
            self._fail([sample.sample_id], "masks", str(error))
        except PantallaError as error:
            self._fail([sample.sample_id], "image", str(error))
        return None

    def _import(self, tasks: list[TaskData], batch: Sequence[ReviewSample]) -> None:
        """Send tasks; a refused part is halved until what the server refuses stands alone."""
        if not tasks:
            return
        self.still_ours()
        try:
            self.client.import_tasks(self.project_id, tasks)
        except OutcomeUnknownError as error:
            self._settle(batch, {task["sample_id"] for task in tasks}, str(error))
        except RequestRefusedError as error:
            self._halve(tasks, batch, str(error))
        except LabelStudioError as error:
            self._fail((task["sample_id"] for task in tasks), "refused", str(error))

    def _halve(self, tasks: list[TaskData], batch: Sequence[ReviewSample], why: str) -> None:
        if len(tasks) == 1:
            self._fail([tasks[0]["sample_id"]], "refused", why)
            return
        self.look(batch)  # some servers keep a part of what they refuse
        left = [task for task in tasks if task["sample_id"] not in self.refs]
        middle = (len(left) + 1) // 2
        self._import(left[:middle], batch)
        self._import(left[middle:], batch)

    def _settle(self, batch: Sequence[ReviewSample], awaited: set[str], why: str) -> None:
        """Wait for tasks that the server may still be writing; they are never sent again here."""
        for pause in self.settle_waits_s:
            time.sleep(pause)
            self.look(batch)
            if awaited <= self.refs.keys():
                return
        self._fail(sorted(awaited - self.refs.keys()), "pending", why)
        self.stalled = why

    def repair(self, wanted: Sequence[ReviewSample]) -> None:
        """Give a prediction to every task that has none; the server loses them under load."""
        for _ in range(REPAIR_ROUNDS):
            bare = [sample for sample in wanted if not self.has_prediction(sample.sample_id)]
            if not bare:
                return
            for batch in batches(bare):
                self.look(batch)
                self.predict(batch)
                self.look(batch)

    def predict(self, batch: Sequence[ReviewSample]) -> None:
        """Send the predictions that tasks of a batch lacked at the last look."""
        rows = [
            (ref.task_id, sample.sample_id, prediction(sample))
            for sample in batch
            for ref in self.refs.get(sample.sample_id, [])
            if ref.prediction_count == 0
        ]
        for part in sized(rows, lambda row: len(json.dumps(asdict(row[2])))):
            self._predict(part)

    def _predict(self, rows: list[tuple[int, str, PredictionPayload]]) -> None:
        self.still_ours()
        try:
            payloads = {task_id: payload for task_id, _, payload in rows}
            self.client.import_predictions(self.project_id, payloads)
        except OutcomeUnknownError:
            # Sent, perhaps kept: wait before anyone looks and decides to send again.
            time.sleep(sum(self.settle_waits_s[:4]))
        except RequestRefusedError as error:
            if len(rows) == 1:
                self.refusals[rows[0][1]] = str(error)
                return
            middle = len(rows) // 2
            self._predict(rows[:middle])
            self._predict(rows[middle:])
        except LabelStudioError as error:
            self.refusals.update((sample_id, str(error)) for _, sample_id, _ in rows)

    def tend(self, samples: Iterable[ReviewSample]) -> None:
        """Bring tasks that are there up to date: texts of open ones, masks of all, overlap."""
        for sample in samples:
            for ref in self.refs.get(sample.sample_id, []):
                try:
                    self._refresh(sample, ref)
                    self._overlap(sample.sample_id, ref)
                except PantallaError as error:
                    self.refusals[sample.sample_id] = str(error)

    def _refresh(self, sample: ReviewSample, ref: TaskRef) -> None:
        image = ref.data.get("image")
        safe = self.images.is_safe(sample.screen_id, image)
        if safe and ref.annotation_count:
            return
        address = str(image) if safe else self.images.address(sample.screen_id)
        data = dict(task_data(sample, address, self.variant))
        # The order was drawn among what was there then; only a task without one gets it now.
        data["priority"] = ref.data.get("priority", data["priority"])
        if data != dict(ref.data):
            self.still_ours()
            self.client.update_data(ref.task_id, data)
            self.refreshed += 1

    def _overlap(self, sample_id: str, ref: TaskRef) -> None:
        answers = self.overlap.wanted(sample_id)
        if ref.overlap < answers and not ref.annotation_count:
            self.still_ours()
            self.client.set_overlap(ref.task_id, answers)

    def _fail(self, sample_ids: Iterable[str], reason: str, detail: str) -> None:
        self.failed.extend(PushFailure(sample_id, reason, detail) for sample_id in sample_ids)

    def hopeless(self, samples: Iterable[ReviewSample]) -> int:
        """How many of these cannot become a task: their picture or the server refuses."""
        lost = {fail.sample_id for fail in self.failed if fail.reason != "pending"}
        return len({sample.sample_id for sample in samples} & lost - self.refs.keys())

    def final_failures(self, wanted: Sequence[ReviewSample]) -> list[PushFailure]:
        """Failures that the last look confirms, and samples that it finds without a prediction."""
        kept = [fail for fail in self.failed if fail.sample_id not in self.refs]
        named = {fail.sample_id for fail in kept}
        for sample in wanted:
            key = sample.sample_id
            if key in named:
                continue
            if key not in self.refs:
                kept.append(PushFailure(key, "pending", "no task was seen on the server"))
            elif not self.has_prediction(key):
                why = self.refusals.get(key, "its task has no prediction")
                kept.append(PushFailure(key, "pending", why))
            elif key in self.refusals:
                kept.append(PushFailure(key, "pending", self.refusals[key]))
        return kept


def batches(samples: Sequence[ReviewSample]) -> Iterator[Sequence[ReviewSample]]:
    """`BATCH` samples at a time."""
    for start in range(0, len(samples), BATCH):
        yield samples[start : start + BATCH]


def sized(rows: Sequence[Row], size_of: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Runs of rows that fit into one request; a row that is too large for it goes alone."""
    part: list[Row] = []
    total = 0
    for row in rows:
        size = size_of(row)
        if part and total + size > MAX_BODY_BYTES:
            yield part
            part, total = [], 0
        part.append(row)
        total += size
    if part:
        yield part
