"""Bring what people did in Label Studio into the dataset; the same call again adds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from label_studio.client import ServerSettings, StudioClient, connect
from label_studio.pull import (
    PulledTask,
    find_project,
    latest_change,
    server_tasks,
    versions_of,
    with_annotations,
)
from label_studio.pull_review import read_review
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.pull_known import KnownReview, KnownReviews, annotation_key, known_reviews
from pipeline.pull_lock import Renew, only_puller
from pipeline.pull_records import (
    REVIEWS_STATE,
    PullState,
    commit_reviews,
    read_state,
    remove_leftovers,
    write_state,
)
from pipeline.pull_rows import deletion, review_row
from pipeline.pull_samples import asked_samples
from schemas.errors import ConfigError, CountMismatchError
from schemas.ids import content_id
from schemas.reviews import BLOCKING, Review, Versions
from transforms.rows import to_table
from transforms.storage import join_uri

OVERLAP = timedelta(minutes=10)
"""How far behind the watermark a pull begins: a change gets its time before it can be seen, and
on a busy SQLite the slowest transaction was seen to take 96 s."""

PART_TASKS = 5000
"""Tasks with annotations that are held at once and become one part; bounds memory."""


@dataclass(slots=True)
class PullReport:
    """What a pull did; `annotations` = `new` + `edited` + `known` + `strangers`.

    Attributes:
        full: whether everything on the server was read, not only what changed.
        tasks: tasks looked at.
        annotations: annotations they have now.
        new: annotations seen for the first time; `edited`: new versions of known ones.
        deleted: annotations that are gone.
        known: annotations that are in the dataset as they are.
        strangers: annotations of samples that this dataset does not hold: they stay on the server
            and are found once it holds them.
        skipped: of the new and edited, those that the reviewer skipped.
        verdicts: of the new and edited, by verdict.
        flags: of the new and edited, by flag.
        blocked: of the new and edited, those that need another look before they count.
        foreign_regions: regions that are not of this interface.
        parts: Parquet parts written.
    """

    project_id: int
    full: bool = False
    tasks: int = 0
    annotations: int = 0
    new: int = 0
    edited: int = 0
    deleted: int = 0
    known: int = 0
    strangers: int = 0
    skipped: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    blocked: int = 0
    foreign_regions: int = 0
    parts: int = 0

    @property
    def balanced(self) -> bool:
        """Whether every annotation was accounted for."""
        return self.annotations == self.new + self.edited + self.known + self.strangers


def pull_dataset(dataset: Dataset, studio: LabelStudioConfig, *, full: bool = False) -> PullReport:
    """Read what changed on the server since the last pull, and add it to `reviews`.

    Args:
        dataset: whose samples were reviewed; its `reviews` table grows.
        studio: the server and its project.
        full: look at everything on the server; only this notices tasks that were deleted as a
            whole.

    Raises:
        ConfigError: no server is configured.
        LabelStudioError: the server or the project cannot be read; nothing is half written.
        DatasetError: another pull is running, or the dataset cannot be read.
        StorageError: the dataset cannot be written.
    """
    if studio.url is None:
        raise ConfigError("label_studio.url is not set: where is the Label Studio server?")
    server = ServerSettings(url=studio.url, project=studio.project, token_env=studio.token_env)
    client = connect(server)
    try:
        project_id = find_project(client, server.project)
        with only_puller(dataset.storage, join_uri(dataset.uri, REVIEWS_STATE)) as renew:
            remove_leftovers(dataset.storage, dataset.uri)
            address = server.url.rstrip("/")
            known = known_reviews(dataset.storage, dataset.uri, address, project_id)
            pulling = _Pull(client, dataset, address, project_id, known, renew)
            return pulling.run(full=full)
    finally:
        client.close()


@dataclass
class _Pull:
    """One pull while it runs, under the lock."""

    client: StudioClient
    dataset: Dataset
    server: str
    project_id: int
    known: KnownReviews
    renew: Renew
    versions: Versions = field(default_factory=Versions)
    report: PullReport = field(init=False)

    def run(self, *, full: bool) -> PullReport:
        storage, uri = self.dataset.storage, self.dataset.uri
        state = read_state(storage, uri, self.server, self.project_id)
        units = content_id(sorted(record.unit_id for record in self.dataset.commits()))
        since = None if full else _since(state, units)
        self.report = PullReport(self.project_id, full=since is None)
        self.versions = versions_of(self.client, self.project_id)
        horizon = latest_change(self.client, self.project_id)
        seen: set[int] = set()
        for batch in self._batches(since, seen):
            self._write(list(self._reviews(batch)))
        if since is None:
            self._write(list(self._vanished(seen, horizon)))
        if not self.report.balanced:
            raise CountMismatchError(f"reviews do not add up: {self.report}")
        found = PullState(
            server=self.server, project_id=self.project_id, watermark=horizon, units=units
        )
        if found != state:
            write_state(storage, uri, found)
        return self.report

    def _batches(self, since: datetime | None, seen: set[int]) -> Iterator[list[PulledTask]]:
        """Tasks that changed and have or had annotations, in batches that fit in memory."""
        batch: list[PulledTask] = []
        for page in server_tasks(self.client, self.project_id, since):
            self.renew()
            self.report.tasks += len(page)
            seen.update(task.id for task in page)
            expected = self.known.keys_of
            batch.extend(
                pulled
                for pulled in with_annotations(self.client, self.project_id, page)
                if pulled.annotations or pulled.task.id in expected
            )
            if len(batch) >= PART_TASKS:
                yield batch
                batch = []
        yield batch

    def _reviews(self, batch: list[PulledTask]) -> Iterator[Review]:
        """What of these tasks is new: versions of annotations, and deletions."""
        samples = asked_samples(self.dataset, self._sample_ids(batch))
        for pulled in batch:
            sample = samples.get(pulled.task.sample_id)
            for annotation in pulled.annotations:
                self.report.annotations += 1
                ref = annotation.ref(pulled.task.id)
                if self.known.has(ref):
                    self.report.known += 1
                elif sample is None:
                    self.report.strangers += 1
                elif self.known.knows(ref):
                    self.report.edited += 1
                    yield read_review(pulled.task.id, annotation, sample)
                else:
                    self.report.new += 1
                    yield read_review(pulled.task.id, annotation, sample)
            for gone in self._gone(pulled):
                yield deletion(gone, samples[gone.sample_id], pulled.task.updated_at)

    def _sample_ids(self, batch: list[PulledTask]) -> set[str]:
        """Samples that have to be looked up: of a pull that finds nothing new, none."""
        wanted = {gone.sample_id for pulled in batch for gone in self._gone(pulled)}
        for pulled in batch:
            if any(not self.known.has(a.ref(pulled.task.id)) for a in pulled.annotations):
                wanted.add(pulled.task.sample_id)
        return wanted

    def _gone(self, pulled: PulledTask) -> list[KnownReview]:
        present = [annotation.ref(pulled.task.id) for annotation in pulled.annotations]
        return self.known.gone(pulled.task.id, present)

    def _vanished(self, seen: set[int], horizon: datetime | None) -> Iterator[Review]:
        """Deletions of reviews whose whole task is gone; only a full look can tell."""
        tasks = sorted(self.known.keys_of.keys() - seen)
        gone = [review for task_id in tasks for review in self.known.gone(task_id, [])]
        samples = asked_samples(self.dataset, {review.sample_id for review in gone})
        for review in gone:
            moment = horizon or review.ref.updated_at
            yield deletion(review, samples[review.sample_id], moment)

    def _write(self, reviews: list[Review]) -> None:
        for review in reviews:
            self._count(review)
        if not reviews:
            return
        ordered = sorted(reviews, key=lambda r: (r.ref.updated_at, annotation_key(r.ref)))
        rows = [review_row(r, self.server, self.project_id, self.versions) for r in ordered]
        storage, uri, now = self.dataset.storage, self.dataset.uri, datetime.now(UTC)
        commit_reviews(storage, uri, to_table("reviews", rows), self.server, self.project_id, now)
        self.report.parts += 1

    def _count(self, review: Review) -> None:
        if review.deleted:
            self.report.deleted += 1
            return
        self.report.skipped += review.skipped
        self.report.verdicts[review.verdict] += not review.skipped
        self.report.flags.update(flag.value for flag in review.flags)
        self.report.blocked += bool(BLOCKING.intersection(review.flags))
        self.report.foreign_regions += review.foreign_regions


def _since(state: PullState | None, units: str) -> datetime | None:
    """From when changes are read; None = from the beginning.

    A dataset that grew may hold samples whose reviews were passed over as strangers.
    """
    if state is None or state.watermark is None or state.units != units:
        return None
    return state.watermark - OVERLAP
