"""Bring the review rows of a dataset to Label Studio; the same call again adds nothing."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from label_studio.client import ServerSettings
from label_studio.push import Overlap, PushPlan, PushReport, push_samples
from label_studio.storages import ServedImages
from pipeline.config import JobConfig, LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.pictures import Pictures
from pipeline.push_lease import PushLease
from pipeline.report.stats import PushOutcome
from pipeline.review_samples import samples_to_review
from schemas.errors import ConfigError


class PushWatch(Protocol):
    """Told how far a push is."""

    def start(self, total: int) -> None:
        """`total` samples are to be on the server."""

    def advance(self, count: int) -> None:
        """So many more were dealt with."""

    def finish(self) -> None:
        """No more will come."""


class _Silent:
    def start(self, total: int) -> None: ...

    def advance(self, count: int) -> None: ...

    def finish(self) -> None: ...


def push_job(dataset: Dataset, config: JobConfig) -> PushOutcome:
    """Push at the end of a run: `Push` of `pipeline.run`."""
    return push_dataset(dataset, config.label_studio)


def push_dataset(
    dataset: Dataset, studio: LabelStudioConfig, watch: PushWatch | None = None
) -> PushOutcome:
    """Push the samples of routes `review` and `audit`, most informative first.

    Args:
        dataset: committed rows; only these are pushed.
        studio: the server, its project, and how people review there.
        watch: told how far it is.

    Raises:
        ConfigError: no server is configured.
        LabelStudioError: the server cannot be used, or another push is running.
        DatasetError, StorageError: the dataset cannot be read, or its lease not be written.
    """
    if studio.url is None:
        raise ConfigError("label_studio.url is not set: where is the Label Studio server?")
    server = ServerSettings(url=studio.url, project=studio.project, token_env=studio.token_env)
    watch = watch or _Silent()
    with PushLease(dataset.storage, dataset.uri) as lease:
        samples = samples_to_review(dataset)
        pictures = Pictures(dataset, studio)
        watch.start(len(samples))
        try:
            report = push_samples(
                samples,
                pictures,
                server,
                plan=_plan(studio, pictures, lease),
                progress=watch.advance,
            )
        finally:
            watch.finish()
    return PushOutcome(
        project=report.project_url,
        tasks_new=report.added,
        tasks_present=report.existing,
        pending=len(report.failed) + report.waiting,
        note=_note(report, studio),
    )


def _plan(studio: LabelStudioConfig, pictures: Pictures, lease: PushLease) -> PushPlan:
    served = ServedImages(
        presign=studio.images == "presigned",
        endpoint=studio.images_endpoint,
        region=studio.images_region,
        local_root=studio.images_root,
    )
    return PushPlan(
        variant=studio.guide,
        budget=studio.budget,
        overlap=Overlap(studio.overlap_share, studio.overlap),
        served=None if studio.images == "upload" else served,
        places=pictures,
        still_ours=lease.still_ours,
    )


def _note(report: PushReport, studio: LabelStudioConfig) -> str:
    """What a person should know beyond the counts, in one line."""
    parts = list(report.notes)
    if report.waiting:
        parts.append(f"{report.waiting} wait: label_studio.budget = {studio.budget} tasks are open")
    if report.refreshed:
        parts.append(f"{report.refreshed} open tasks got new texts or another picture")
    if report.repaired:
        parts.append(f"{report.repaired} tasks had lost their prediction and got it again")
    if report.duplicates:
        some = ", ".join(sample_id[:12] for sample_id in report.duplicates[:3])
        parts.append(f"samples with more than one task: {len(report.duplicates)} ({some})")
    reasons = Counter(failure.reason for failure in report.failed)
    parts += [f"{count} not pushed: {reason}" for reason, count in sorted(reasons.items())]
    if report.failed:
        first = report.failed[0]
        parts.append(f"for example {first.sample_id[:12]}: {first.detail}")
    return "; ".join(parts)
