"""Which samples people review, and what a reviewer needs of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.dataset import Dataset
from pipeline.rows import SampleRow, sample_rows
from schemas.codes import QueryKind, Route, SampleStatus
from schemas.ids import unit_draw
from schemas.records import Item
from schemas.review import ReviewSample
from transforms.score import USABLE
from transforms.vote import footprint, winning_supporters

Routed: TypeAlias = tuple[ReviewSample, Route]

REVIEWED = (Route.REVIEW.value, Route.AUDIT.value)
"""Routes that end in Label Studio; a reviewer is not told which of them a sample is."""


def review_samples(
    annotations: pa.Table, apps: Mapping[str, str | None] | None = None
) -> list[ReviewSample]:
    """The samples of an `annotations` table that people review, most informative first.

    Args:
        annotations: committed rows, all columns, in any order.
        apps: application by screen id, where known.
    """
    return in_order(_routed(annotations, apps or {}))


def samples_to_review(dataset: Dataset) -> list[ReviewSample]:
    """The samples of a whole dataset that people review, most informative first.

    Parts are read one at a time, so that what is held is what is reviewed.
    """
    apps = {screen.screen_id: screen.app for screen in dataset.screens()}
    parts = dataset.parts("annotations")
    return in_order([routed for _, part in parts for routed in _routed(part, apps)])


def in_order(routed: Sequence[Routed]) -> list[ReviewSample]:
    """The order of review; from it, and from `priority`, nobody can tell who is audited.

    A sample in doubt comes the earlier, the less is known of it (`informativeness`). An audited
    sample gets the priority of one of those, drawn by its sample id, so that the audit is spread
    through the queue as if it were more of the same.
    """
    doubts = sorted(informativeness(s) for s, route in routed if route == Route.REVIEW)
    samples = [
        replace(sample, priority=_priority(sample, route, doubts)) for sample, route in routed
    ]
    return sorted(samples, key=lambda sample: (-sample.priority, sample.sample_id))


def informativeness(sample: ReviewSample) -> float:
    """What a review would teach, 0..1: `1 - |2p - 1|`, most where right and wrong are as likely.

    An answer that cannot be used has nothing to be uncertain about: that the model is lost is
    known, and what is left is the dearest work, drawing from nothing. Such samples come last.
    """
    if sample.status not in USABLE:
        return 0.0
    return 1.0 - abs(2.0 * sample.probability - 1.0)


def _priority(sample: ReviewSample, route: Route, doubts: Sequence[float]) -> float:
    if route is not Route.AUDIT:
        return informativeness(sample)
    drawn = unit_draw(sample.sample_id, "audit position")
    return doubts[int(drawn * len(doubts))] if doubts else drawn


def _routed(annotations: pa.Table, apps: Mapping[str, str | None]) -> list[Routed]:
    wanted = annotations.filter(pc.is_in(annotations["route"], pa.array(REVIEWED)))
    return [
        (_review_sample(row, apps.get(row.screen_id)), Route(row.route))
        for row in sample_rows(wanted)
    ]


def _review_sample(row: SampleRow, app: str | None) -> ReviewSample:
    return ReviewSample(
        sample_id=row.sample_id,
        screen_id=row.screen_id,
        kind=QueryKind(row.kind),
        instruction=row.instruction,
        status=SampleStatus(row.status),
        items=row.items,
        candidates=_dissenting(row),
        size=row.size,
        probability=row.probability,
        model=f"{row.model} {row.model_revision}, {row.profile} {row.prompt_version}",
        app=app,
        locale=row.locale,
    )


def _dissenting(row: SampleRow) -> tuple[Item, ...]:
    """Places of the k answers outside the region that won the vote; all where no place won."""
    places = [Item(point=c.point, box=c.box) for c in row.candidates if c.point or c.box]
    if not row.items or not places:
        return tuple(places)
    winners = winning_supporters([footprint(place.point, place.box) for place in places])
    return tuple(place for index, place in enumerate(places) if index not in winners)
