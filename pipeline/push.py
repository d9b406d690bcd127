"""Bring the review rows of a dataset to Label Studio; the same call again adds nothing."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable

from label_studio.client import ServerSettings
from label_studio.images import UnshowableImageError, image_kind
from label_studio.push import Progress, PushReport, push_samples
from pipeline.config import JobConfig, LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.report.stats import PushOutcome
from pipeline.review_samples import samples_to_review
from schemas.errors import ConfigError


def push_job(dataset: Dataset, config: JobConfig) -> PushOutcome:
    """Push at the end of a run: `Push` of `pipeline.run`."""
    return push_dataset(dataset, config.label_studio)


def push_dataset(
    dataset: Dataset, studio: LabelStudioConfig, progress: Progress | None = None
) -> PushOutcome:
    """Push the samples of routes `review` and `audit`, most uncertain first.

    Args:
        dataset: committed rows; only these are pushed.
        studio: the server and its project.
        progress: told how many samples were just dealt with.

    Raises:
        ConfigError: no server is configured.
        LabelStudioError: the server cannot be used, or another push is running.
        DatasetError, StorageError: the dataset cannot be read.
    """
    if studio.url is None:
        raise ConfigError("label_studio.url is not set: where is the Label Studio server?")
    server = ServerSettings(url=studio.url, project=studio.project, token_env=studio.token_env)
    samples = samples_to_review(dataset)
    report = push_samples(samples, picture_reader(dataset), server, progress=progress)
    return PushOutcome(
        project=report.project_url,
        tasks_new=report.added,
        tasks_present=report.existing,
        pending=len(report.failed),
        note=_note(report),
    )


def picture_reader(dataset: Dataset) -> Callable[[str], bytes]:
    """Screen id to a picture that browsers show: the original bytes, or a PNG of the pixels."""
    screens = {screen.screen_id: screen for screen in dataset.screens()}

    def read(screen_id: str) -> bytes:
        screen = screens[screen_id]
        data = dataset.pixels_of(screen)
        try:
            image_kind(data)
        except UnshowableImageError:
            sink = io.BytesIO()
            dataset.picture(screen).save(sink, "PNG")
            return sink.getvalue()
        return data

    return read


def _note(report: PushReport) -> str:
    """What a person should know beyond the counts, in one line."""
    parts = []
    if report.repaired:
        parts.append(f"{report.repaired} tasks had lost their prediction and got it again")
    if report.duplicates:
        some = ", ".join(sample_id[:12] for sample_id in report.duplicates[:3])
        parts.append(f"{len(report.duplicates)} samples have more than one task ({some})")
    reasons = Counter(failure.reason for failure in report.failed)
    parts += [f"{count} not pushed: {reason}" for reason, count in sorted(reasons.items())]
    if report.failed:
        first = report.failed[0]
        parts.append(f"for example {first.sample_id[:12]}: {first.detail}")
    return "; ".join(parts)
