"""Which samples people review, and what a reviewer needs of each."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.dataset import Dataset
from pipeline.rows import SampleRow, sample_rows
from schemas.codes import QueryKind, Route, SampleStatus
from schemas.records import Item
from schemas.review import ReviewSample

REVIEWED = (Route.REVIEW.value, Route.AUDIT.value)
"""Routes that end in Label Studio; a reviewer is not told which of them a sample is."""


def review_samples(
    annotations: pa.Table, apps: Mapping[str, str | None] | None = None
) -> list[ReviewSample]:
    """The samples of an `annotations` table that people review, most uncertain first.

    Args:
        annotations: committed rows, all columns, in any order.
        apps: application by screen id, where known.
    """
    wanted = annotations.filter(pc.is_in(annotations["route"], pa.array(REVIEWED)))
    known = apps or {}
    samples = [_review_sample(row, known.get(row.screen_id)) for row in sample_rows(wanted)]
    return sorted(samples, key=_urgency)


def samples_to_review(dataset: Dataset) -> list[ReviewSample]:
    """The samples of a whole dataset that people review, most uncertain first.

    Parts are read one at a time, so that what is held is what is reviewed.
    """
    apps = {screen.screen_id: screen.app for screen in dataset.screens()}
    parts = dataset.parts("annotations")
    samples = [sample for _, part in parts for sample in review_samples(part, apps)]
    return sorted(samples, key=_urgency)


def _urgency(sample: ReviewSample) -> tuple[float, str]:
    return sample.probability, sample.sample_id


def _review_sample(row: SampleRow, app: str | None) -> ReviewSample:
    places = (Item(point=answer.point, box=answer.box) for answer in row.candidates)
    return ReviewSample(
        sample_id=row.sample_id,
        screen_id=row.screen_id,
        kind=QueryKind(row.kind),
        instruction=row.instruction,
        status=SampleStatus(row.status),
        items=row.items,
        candidates=tuple(item for item in places if item.point or item.box),
        size=row.size,
        probability=row.probability,
        model=f"{row.model} {row.model_revision}".strip(),
        app=app,
        locale=row.locale,
    )
