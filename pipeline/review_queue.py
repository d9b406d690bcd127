"""What of a project's queue is no longer wanted, and taking it out."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from label_studio.client import StudioClient
from label_studio.pull import server_tasks
from label_studio.pull_queue import remove_untouched
from pipeline.dataset import Dataset
from pipeline.review_samples import REVIEWED


@dataclass(frozen=True, slots=True)
class RetirePlan:
    """Which tasks would be taken out of the queue.

    Attributes:
        tasks: ids of superseded tasks that nobody has touched.
        touched: superseded tasks with an answer, a skip or a draft: they stay.
        elsewhere: tasks of screens that this dataset does not hold, perhaps of another dataset:
            they stay, unless they are asked for.
    """

    tasks: tuple[int, ...]
    touched: int
    elsewhere: int


def wanted_samples(dataset: Dataset) -> dict[str, str]:
    """Samples of the dataset that people review, with their screens.

    Raises:
        DatasetError: if a part is missing or damaged.
    """
    wanted: dict[str, str] = {}
    for _, part in dataset.parts("annotations", ("sample_id", "screen_id", "route")):
        kept = part.filter(pc.is_in(part["route"], pa.array(REVIEWED)))
        ids = kept["sample_id"].to_pylist(), kept["screen_id"].to_pylist()
        wanted.update(zip(*ids, strict=True))
    return wanted


def plan_retire(
    dataset: Dataset, client: StudioClient, project_id: int, *, elsewhere: bool = False
) -> RetirePlan:
    """Find tasks whose sample is superseded: not in the dataset, or no longer for review.

    Args:
        dataset: the one that counts.
        client: the server.
        project_id: its review project.
        elsewhere: count tasks of screens that the dataset does not hold as superseded too; right
            only where no other dataset shares the project.

    Raises:
        LabelStudioError: the server cannot be read.
        DatasetError: the dataset cannot be read.
    """
    wanted = wanted_samples(dataset)
    screens = {row.screen_id for row in dataset.screens()}
    free: list[int] = []
    touched = left = 0
    for page in server_tasks(client, project_id):
        for task in page:
            if task.sample_id in wanted:
                continue
            if task.screen_id not in screens and not elsewhere:
                left += 1
            elif task.touched:
                touched += 1
            else:
                free.append(task.id)
    return RetirePlan(tuple(free), touched, left)


def retire(client: StudioClient, project_id: int, plan: RetirePlan) -> int:
    """Take the tasks of a plan out of the queue; one that was touched since stays.

    Returns:
        How many are gone.

    Raises:
        LabelStudioError: the server refuses; what is gone until then stays gone.
    """
    return remove_untouched(client, project_id, plan.tasks)
