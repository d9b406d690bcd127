"""How the reviewing goes: what waits, what was done, how long it takes, when it may end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from label_studio.client import StudioClient
from label_studio.pull import server_tasks
from label_studio.pull_http import ServerTask
from label_studio.pull_queue import FinishedTask, finished_since
from pipeline.dataset import Dataset
from pipeline.review_queue import wanted_samples

PACE_DAYS = 7
"""Days that the pace is measured over, today included."""


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """The state of one project; `to_review` = `waiting` + `finished` + `not_pushed`.

    Attributes:
        to_review: samples of the dataset that people review.
        waiting: of these, on the server and not finished; `begun` of them have an answer or a
            draft already, `skipped` were skipped by someone and answered by none.
        finished: of these, with as many answers as the project wants.
        not_pushed: of these, not on the server.
        superseded: tasks on the server that are no longer for review in this dataset.
        today: tasks finished since midnight, local time.
        per_day: tasks finished a day, over the days of the last seven on which any was.
        minutes: median minutes of a task over these days; None where the server knows none.
        ends: day on which the queue is empty at that pace; None without a pace.
    """

    to_review: int
    waiting: int
    begun: int
    skipped: int
    finished: int
    not_pushed: int
    superseded: int
    today: int
    per_day: float
    minutes: float | None
    ends: date | None

    @property
    def hours_left(self) -> float | None:
        """Reviewers' hours that the waiting tasks take; None where their time is not known."""
        return None if self.minutes is None else self.waiting * self.minutes / 60


def review_status(
    dataset: Dataset, client: StudioClient, project_id: int, now: datetime
) -> ReviewStatus:
    """Compare the server's queue with the dataset.

    Args:
        dataset: whose samples are reviewed.
        client: the server.
        project_id: its review project.
        now: with the time zone whose midnight begins today.

    Raises:
        LabelStudioError: the server cannot be read.
        DatasetError: the dataset cannot be read.
    """
    wanted = wanted_samples(dataset).keys()
    tasks = [task for page in server_tasks(client, project_id) for task in page]
    ours = {task.sample_id: task for task in tasks if task.sample_id in wanted}
    waiting = [task for task in ours.values() if not task.is_labeled]
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    done = finished_since(client, project_id, midnight - timedelta(days=PACE_DAYS - 1))
    per_day = _per_day(done, now)
    return ReviewStatus(
        to_review=len(wanted),
        waiting=len(waiting),
        begun=sum(bool(task.total_annotations or task.drafts) for task in waiting),
        skipped=sum(_only_skipped(task) for task in waiting),
        finished=len(ours) - len(waiting),
        not_pushed=len(wanted) - len(ours),
        superseded=sum(task.sample_id not in wanted for task in tasks),
        today=sum(task.completed_at >= midnight for task in done),
        per_day=per_day,
        minutes=_minutes(done),
        ends=_ends(len(waiting), per_day, now),
    )


def _only_skipped(task: ServerTask) -> bool:
    return bool(task.cancelled_annotations and not task.total_annotations)


def _per_day(done: Sequence[FinishedTask], now: datetime) -> float:
    days = {task.completed_at.astimezone(now.tzinfo).date() for task in done}
    return len(done) / len(days) if days else 0.0


def _minutes(done: Sequence[FinishedTask]) -> float | None:
    known = [task.avg_lead_time for task in done if task.avg_lead_time is not None]
    return median(known) / 60 if known else None


def _ends(waiting: int, per_day: float, now: datetime) -> date | None:
    if not per_day:
        return None
    return now.date() + timedelta(days=math.ceil(waiting / per_day))
