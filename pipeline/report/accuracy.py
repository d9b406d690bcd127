"""Accuracy against the truth of sidecars, which the model never saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from schemas.codes import QueryKind
from schemas.geometry import Box
from transforms.evaluate import match_count

IOU = 0.5
"""Overlap at which a found box counts as a true one: the usual threshold of detection work."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `judged`, with an exact interval.

    Attributes:
        low: lower end of the 95 % Clopper-Pearson interval of the share; `high` the upper.
    """

    judged: int
    hits: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """Hits over judged, or None where nothing was judged."""
        return self.hits / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class Localization:
    """Boxes found against true boxes over all judged samples, matched one to one at IoU 0.5."""

    samples: int
    found: int
    true: int
    matched: int

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall over all boxes; None where nothing was judged."""
        if self.samples == 0:
            return None
        both = self.found + self.true
        return 2 * self.matched / both if both else 1.0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How right the answers were, where a sidecar knows.

    Attributes:
        grounding: point in box, or absent where the target is absent, over all routes.
        by_route: the same for each route; `by_shard` for each shard, by its URI.
        localization: boxes of the "all elements" queries.
    """

    grounding: Share
    by_route: dict[str, Share] = field(default_factory=dict)
    by_shard: dict[str, Share] = field(default_factory=dict)
    localization: Localization = Localization(0, 0, 0, 0)


COLUMNS = (
    "sample_id", "element_index", "query_kind", "route", "shard", "truth_hit", "truth",
    "x1", "y1", "x2", "y2",
)  # fmt: skip
"""What the tally reads of `annotations`: narrow, so that large datasets pass quickly."""


@dataclass(slots=True)
class AccuracyTally:
    """Takes parts of `annotations` one at a time and gives their `Accuracy`."""

    judged: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    shard_judged: Counter[str] = field(default_factory=Counter)
    shard_hits: Counter[str] = field(default_factory=Counter)
    boxes: Counter[str] = field(default_factory=Counter)

    def add(self, part: pa.Table) -> None:
        """Count the samples of one part; those without truth change nothing.

        Args:
            part: at least the columns of `COLUMNS`; all rows of a sample are in the same part.
        """
        first = pc.equal(part["element_index"], 0)
        judged = part.filter(pc.and_(first, pc.is_valid(part["truth_hit"])))
        columns = (judged[name].to_pylist() for name in ("route", "shard", "truth_hit"))
        for route, shard, hit in zip(*columns, strict=True):
            self.judged[route] += 1
            self.hits[route] += hit
            self.shard_judged[shard] += 1
            self.shard_hits[shard] += hit
        self._add_localization(
            part.filter(pc.equal(part["query_kind"], QueryKind.LOCALIZATION.value))
        )

    def _add_localization(self, rows: pa.Table) -> None:
        """Count localization samples; truth is stored with the first element of each only."""
        found: dict[str, list[Box]] = {}
        true: dict[str, list[Box]] = {}
        for row in rows.to_pylist():
            boxes = found.setdefault(row["sample_id"], [])
            if row["x1"] is not None:
                boxes.append(_box(row))
            if row["truth"] is not None:
                true[row["sample_id"]] = [_box(known) for known in row["truth"]["boxes"] or ()]
        for sample_id, boxes in true.items():
            self.boxes["samples"] += 1
            self.boxes["found"] += len(found[sample_id])
            self.boxes["true"] += len(boxes)
            self.boxes["matched"] += match_count(found[sample_id], boxes, IOU)

    def result(self) -> Accuracy:
        """The accuracy of everything added so far."""
        return Accuracy(
            grounding=share(self.judged.total(), self.hits.total()),
            by_route=_shares(self.judged, self.hits),
            by_shard=_shares(self.shard_judged, self.shard_hits),
            localization=Localization(
                samples=self.boxes["samples"],
                found=self.boxes["found"],
                true=self.boxes["true"],
                matched=self.boxes["matched"],
            ),
        )


def _shares(judged: Counter[str], hits: Counter[str]) -> dict[str, Share]:
    return {name: share(judged[name], hits[name]) for name in sorted(judged)}


def _box(row: Mapping[str, float]) -> Box:
    return Box(row["x1"], row["y1"], row["x2"], row["y2"])


def share(judged: int, hits: int) -> Share:
    """A share with its exact binomial interval (Clopper and Pearson, Biometrika 26, 1934)."""
    if judged == 0:
        return Share(0, 0, 0.0, 1.0)
    from scipy.stats import binomtest

    interval = binomtest(hits, judged).proportion_ci(_CONFIDENCE, method="exact")
    return Share(judged, hits, float(interval.low), float(interval.high))
