"""What people vouch for: reviews and annotations joined, where the reviews of a sample agree."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.dataset import Dataset
from pipeline.gold_agreement import (
    ABSENT,
    PLACED,
    disagreement,
    fleiss_kappa,
    pair_figures,
    same_place,
)
from pipeline.gold_reviews import StandingReview, standing_reviews
from pipeline.gold_rows import asked_cells, gold_row
from transforms.rows import Row, to_table
from transforms.storage import join_uri, normalize_uri, parent_uri, storage_for

GOLD_FILE = "gold/gold.parquet"
"""Where gold goes in its dataset, unless another file is named; replaced as a whole."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """A sample that a person should look at again; who said what is left out on purpose.

    Attributes:
        why: what does not fit together.
        tasks: ids on the server.
    """

    sample_id: str
    why: str
    verdicts: tuple[str, ...]
    annotation_ids: tuple[int, ...]
    tasks: tuple[int, ...]
    server: str
    project_id: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far reviewers agree where two or more reviewed the same sample.

    Attributes:
        samples: samples with more than one review; `pairs` of reviews of them.
        verdict_share: share of pairs with the same verdict.
        kappa: the same beyond chance (Fleiss); None where it is not defined.
        placed_pairs: pairs that both place something; `same_place` of them mean the same place.
        distance_px: median distance of their points, original pixels.
        iou: median overlap of their boxes.
    """

    samples: int = 0
    pairs: int = 0
    verdict_share: float | None = None
    kappa: float | None = None
    placed_pairs: int = 0
    same_place: int = 0
    distance_px: float | None = None
    iou: float | None = None


@dataclass(frozen=True, slots=True)
class ReviewerWork:
    """How much one person did: counts and time, nothing else."""

    reviewer: str
    reviews: int
    hours: float
    median_s: float | None


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold of a dataset; `samples` = rows + `second_look` + those set aside.

    Attributes:
        table: rows of the `gold` table, by sample id.
        samples: samples with at least one review that stands.
        set_aside: samples whose reviews agree that nothing can be vouched for, by verdict.
    """

    table: pa.Table
    samples: int
    second_look: tuple[SecondLook, ...]
    set_aside: Mapping[str, int]
    agreement: Agreement
    reviewers: tuple[ReviewerWork, ...] = field(default=())

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Rows by outcome."""
        return Counter(self.table["outcome"].to_pylist())


def make_gold(dataset: Dataset) -> Gold:
    """Join the reviews that stand with what they are about.

    A sample is gold where all its reviews agree and none contradicts itself.

    Raises:
        DatasetError: if a part is missing or damaged.
    """
    latest = dataset.reviews(latest=True)
    by_sample = standing_reviews(latest)
    asked = asked_cells(dataset, by_sample)
    apps = {screen.screen_id: screen.app for screen in dataset.screens()}
    rows: list[Row] = []
    looks: list[SecondLook] = []
    aside: Counter[str] = Counter()
    for sample_id, reviews in sorted(by_sample.items()):
        why = _contradiction(reviews)
        stand = reviews[-1].opinion.stand
        if why:
            looks.append(_second_look(reviews, why))
        elif stand in (PLACED, ABSENT):
            cells = asked[sample_id]
            rows.append(gold_row(reviews, cells, apps.get(str(cells.copied["screen_id"]))))
        else:
            aside[stand] += 1
    return Gold(
        table=to_table("gold", rows),
        samples=len(by_sample),
        second_look=tuple(looks),
        set_aside=dict(aside),
        agreement=_agreement(by_sample),
        reviewers=_work(by_sample),
    )


def write_gold(gold: Gold, out: str, s3_endpoint: str | None = None) -> str:
    """Write the table, and beside it the list of samples that need another look.

    Args:
        gold: from `make_gold`.
        out: the Parquet file, local or `s3://`; replaced if it exists.
        s3_endpoint: of the store, where it is not AWS.

    Returns:
        Address of the list, as JSON Lines; its name begins with `_`, so that readers of a folder
        of Parquet pass over it.

    Raises:
        StorageError: if one of them cannot be written.
    """
    target = normalize_uri(out)
    storage = storage_for(target, s3_endpoint)
    sink = io.BytesIO()
    pq.write_table(gold.table, sink, compression="zstd", write_page_checksum=True)
    storage.write_atomic(target, sink.getvalue())
    stem = target.rpartition("/")[2].removesuffix(".parquet")
    listed = join_uri(parent_uri(target), f"_{stem}-second-look.jsonl")
    lines = [json.dumps(asdict(look), ensure_ascii=False) + "\n" for look in gold.second_look]
    storage.write_atomic(listed, "".join(lines).encode())
    return listed


def _contradiction(reviews: Sequence[StandingReview]) -> str:
    """Why a sample cannot be gold yet; empty when nothing speaks against it."""
    blocked = sorted({flag for review in reviews for flag in review.blocked})
    if blocked:
        return "flags: " + ", ".join(blocked)
    opinions = [review.opinion for review in reviews]
    why = disagreement(opinions, reviews[0].kind, reviews[0].size)
    fixes = {review.instruction for review in reviews if review.instruction}
    return why or ("corrected instructions differ" if len(fixes) > 1 else "")


def _second_look(reviews: Sequence[StandingReview], why: str) -> SecondLook:
    return SecondLook(
        sample_id=reviews[0].sample_id,
        why=why,
        verdicts=tuple(review.opinion.verdict for review in reviews),
        annotation_ids=tuple(review.opinion.annotation_id for review in reviews),
        tasks=tuple(sorted({review.task_id for review in reviews})),
        server=reviews[0].server,
        project_id=reviews[0].project_id,
    )


def _agreement(by_sample: Mapping[str, Sequence[StandingReview]]) -> Agreement:
    shared = [reviews for reviews in by_sample.values() if len(reviews) > 1]
    pairs = [pair for reviews in shared for pair in combinations(reviews, 2)]
    if not pairs:
        return Agreement()
    placed = [pair for pair in pairs if all(r.opinion.stand == PLACED for r in pair)]
    figures = [pair_figures(one.opinion, two.opinion) for one, two in placed]
    distances = [f.distance_px for f in figures if f.distance_px is not None]
    overlaps = [f.iou for f in figures if f.iou is not None]
    same = sum(one.opinion.verdict == two.opinion.verdict for one, two in pairs)
    return Agreement(
        samples=len(shared),
        pairs=len(pairs),
        verdict_share=same / len(pairs),
        kappa=fleiss_kappa([[r.opinion.verdict for r in reviews] for reviews in shared]),
        placed_pairs=len(placed),
        same_place=sum(same_place(a.opinion, b.opinion, a.kind, a.size) for a, b in placed),
        distance_px=median(distances) if distances else None,
        iou=median(overlaps) if overlaps else None,
    )


def _work(by_sample: Mapping[str, Sequence[StandingReview]]) -> tuple[ReviewerWork, ...]:
    times: dict[str, list[float | None]] = {}
    for reviews in by_sample.values():
        for review in reviews:
            times.setdefault(review.opinion.reviewer, []).append(review.opinion.seconds)
    done = []
    for reviewer, seconds in sorted(times.items()):
        known = [value for value in seconds if value is not None]
        middle = median(known) if known else None
        done.append(ReviewerWork(reviewer, len(seconds), sum(known) / 3600, middle))
    return tuple(done)
