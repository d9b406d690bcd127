"""What people vouch for, and how far they agree."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_fixtures import Ask, Stored, make_stored, sample_id

from pipeline.cli.app import main
from pipeline.dataset import Dataset, open_dataset
from pipeline.gold import Gold, make_gold, write_gold
from pipeline.gold_agreement import Opinion, disagreement, fleiss_kappa, pair_figures
from pipeline.pull_records import commit_reviews
from pipeline.pull_rows import review_row
from pipeline.pull_samples import asked_samples
from pipeline.verify.findings import Verdict
from pipeline.verify.verify import verify_dataset
from schemas.codes import QueryKind, Role
from schemas.geometry import Box, Point, Size
from schemas.reviews import (
    AnnotationRef,
    Review,
    ReviewedBox,
    ReviewFlag,
    Versions,
)
from schemas.tables import GOLD
from transforms.rows import to_table

SCREENS = (
    Stored(
        "uno",
        (
            Ask("Abrir el menú", point=(30, 40), boxes=((10, 20, 50, 60),)),
            Ask("Buscar", point=(10, 10)),
            Ask("todo", kind="localization", boxes=((0, 0, 50, 20), (60, 0, 90, 20))),
        ),
    ),
    Stored("dos", (Ask("Salir", status="absent"),), colour=(10, 20, 30)),
)
MENU, SEARCH, ALL, EXIT = (
    sample_id("uno", 0),
    sample_id("uno", 1),
    sample_id("uno", 2),
    sample_id("dos", 0),
)
START = datetime(2026, 12, 1, tzinfo=UTC)
SIZE = Size(320, 240)
MODEL_BOX = Box(10, 20, 50, 60)


class Reviewed:
    """A dataset with reviews written straight into it."""

    def __init__(self, folder: Path) -> None:
        self.dataset: Dataset = make_stored(folder, SCREENS)
        self.count = 0

    def add(self, sample: str, verdict: str, reviewer: str = "1", **parts: Any) -> Review:
        self.count += 1
        ref = AnnotationRef(
            task_id=100 + self.count,
            annotation_id=self.count,
            unique_id=f"u-{self.count}",
            reviewer=reviewer,
            created_at=START,
            updated_at=START + timedelta(minutes=self.count),
            lead_time_s=10.0 * self.count,
        )
        asked = asked_samples(self.dataset, [sample])[sample]
        review = Review(ref=ref, sample=asked, verdict=verdict, **parts)
        row = review_row(review, "http://ls", 5, Versions("1.23.2", "i", "g"))
        now = START + timedelta(days=1, minutes=self.count)
        storage = self.dataset.storage
        commit_reviews(storage, self.dataset.uri, to_table("reviews", [row]), "http://ls", 5, now)
        return review

    def gold(self) -> Gold:
        made = make_gold(self.dataset)
        told = made.table.num_rows + len(made.second_look) + sum(made.set_aside.values())
        assert made.samples == told
        return made


@pytest.fixture
def reviewed(tmp_path: Path) -> Reviewed:
    return Reviewed(tmp_path)


def boxed(box: Box, role: Role | None = Role.BUTTON, text: str | None = None) -> dict[str, Any]:
    target = ReviewedBox(box, role, text)
    return {"target": target, "boxes": (target,), "role": role, "text": text}


def test_an_accepted_answer_is_gold_with_where_it_comes_from(reviewed: Reviewed) -> None:
    review = reviewed.add(MENU, "correct", "7", point=Point(30, 40), **boxed(MODEL_BOX))
    made = reviewed.gold()
    assert made.table.schema == GOLD
    (row,) = made.table.to_pylist()
    assert (row["sample_id"], row["outcome"]) == (MENU, "accepted")
    assert [row[n] for n in ("x", "y", "x1", "y1", "x2", "y2")] == [30, 40, 10, 20, 50, 60]
    assert (row["frame"], row["image_width"], row["role"]) == ("original_px", 320, "button")
    assert (row["instruction"], row["instruction_asked"]) == ("Abrir el menú", "Abrir el menú")
    assert (row["reviewers"], row["annotation_ids"], row["verdicts"]) == (["7"], [1], ["correct"])
    assert row["review_ids"] == reviewed.dataset.reviews()["review_id"].to_pylist()
    assert row["reviewed_at"] == review.ref.updated_at
    assert (row["app"], row["locale"], row["image_licence"]) == ("prueba", "es-AR", "BSD-3-Clause")
    assert (row["model"], row["model_revision"], row["model_licence"]) == (
        "prueba",
        "r1",
        "Apache-2.0",
    )
    assert row["answer"]["status"] == "ok"
    assert row["answer"]["x"] == 30
    assert row["boxes"] == [
        {"x1": 10, "y1": 20, "x2": 50, "y2": 60, "role": "button", "text": None}
    ]


def test_a_correction_replaces_place_class_and_instruction(reviewed: Reviewed) -> None:
    reviewed.add(
        MENU,
        "corrected",
        instruction="Abrir el menú lateral",
        **boxed(Box(100, 100, 140, 120), Role.LINK, "Menú"),
    )
    (row,) = reviewed.gold().table.to_pylist()
    assert (row["outcome"], row["x"], row["x1"], row["y2"]) == ("corrected", None, 100, 120)
    assert (row["role"], row["label"]) == ("link", "Menú")
    assert (row["instruction"], row["instruction_asked"]) == (
        "Abrir el menú lateral",
        "Abrir el menú",
    )
    assert row["answer"]["x1"] == 10, "what the model answered stays beside it"


@pytest.mark.parametrize(
    ("sample", "verdict"), [(MENU, "absent"), (EXIT, "correct"), (EXIT, "absent")]
)
def test_absent_is_gold_without_a_place(reviewed: Reviewed, sample: str, verdict: str) -> None:
    reviewed.add(sample, verdict)
    (row,) = reviewed.gold().table.to_pylist()
    assert (row["outcome"], row["x"], row["x1"], row["boxes"]) == ("absent", None, None, [])


def test_all_boxes_of_a_localization_are_gold(reviewed: Reviewed) -> None:
    boxes = (
        ReviewedBox(Box(0, 0, 50, 20), Role.BUTTON, "Uno"),
        ReviewedBox(Box(60, 0, 95, 20), Role.LINK, None),
    )
    reviewed.add(ALL, "corrected", boxes=boxes)
    (row,) = reviewed.gold().table.to_pylist()
    assert (row["outcome"], row["x1"]) == ("corrected", None)
    assert [(box["x2"], box["role"], box["text"]) for box in row["boxes"]] == [
        (50, "button", "Uno"),
        (95, "link", None),
    ]
    assert len(row["answer"]["boxes"]) == 2


@pytest.mark.parametrize("verdict", ["ambiguous", "illegible", "personal_data"])
def test_what_nobody_can_vouch_for_is_counted_and_not_gold(
    reviewed: Reviewed, verdict: str
) -> None:
    reviewed.add(MENU, verdict)
    made = reviewed.gold()
    assert (made.table.num_rows, made.set_aside) == (0, {verdict: 1})


def test_skipped_and_deleted_reviews_vouch_for_nothing(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "none", skipped=True)
    gone = reviewed.add(SEARCH, "absent")
    deleted = Review(
        ref=AnnotationRef(**{n: getattr(gone.ref, n) for n in gone.ref.__slots__}),
        sample=gone.sample,
        verdict="none",
        deleted=True,
    )
    row = review_row(deleted, "http://ls", 5, Versions())
    storage, uri = reviewed.dataset.storage, reviewed.dataset.uri
    commit_reviews(storage, uri, to_table("reviews", [row]), "http://ls", 5, START)
    made = reviewed.gold()
    assert (made.samples, made.table.num_rows) == (0, 0)


def test_a_review_that_contradicts_itself_waits_for_another_look(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "corrected", flags=(ReviewFlag.CORRECTED_UNCHANGED,), **boxed(MODEL_BOX))
    made = reviewed.gold()
    assert made.table.num_rows == 0
    (look,) = made.second_look
    assert (look.why, look.annotation_ids) == ("flags: corrected_unchanged", (1,))


def test_a_repair_that_blocks_nothing_is_told_in_gold(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "corrected", flags=(ReviewFlag.CLIPPED,), **boxed(MODEL_BOX))
    assert reviewed.gold().table["flags"].to_pylist() == [["clipped"]]


def test_two_who_agree_are_one_row_with_the_later_correction(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "corrected", "2", **boxed(Box(10, 20, 54, 60)))
    reviewed.add(MENU, "correct", "1", point=Point(30, 40), **boxed(MODEL_BOX))
    made = reviewed.gold()
    (row,) = made.table.to_pylist()
    assert (row["outcome"], row["x2"], row["reviewers"]) == ("corrected", 54, ["2", "1"])
    found = made.agreement
    assert (found.samples, found.pairs, found.placed_pairs, found.same_place) == (1, 1, 1, 1)
    assert found.iou == pytest.approx(40 / 44)
    assert found.distance_px == pytest.approx(2.0)
    assert found.verdict_share == 0


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (("absent", {}), ("correct", boxed(MODEL_BOX)), "verdicts differ: absent, placed"),
        (
            ("corrected", boxed(Box(100, 100, 140, 120))),
            ("correct", boxed(MODEL_BOX)),
            "places differ: IoU 0.00, 114 px apart",
        ),
        (("ambiguous", {}), ("illegible", {}), "verdicts differ: ambiguous, illegible"),
    ],
)
def test_two_who_disagree_are_listed_for_a_third_look(
    reviewed: Reviewed, tmp_path: Path, first: Any, second: Any, why: str
) -> None:
    reviewed.add(MENU, first[0], "1", **first[1])
    reviewed.add(MENU, second[0], "2", **second[1])
    made = reviewed.gold()
    assert made.table.num_rows == 0
    listed = write_gold(made, str(tmp_path / "salida/oro.parquet"))
    assert Path(listed) == tmp_path / "salida/_oro-second-look.jsonl"
    (line,) = Path(listed).read_text(encoding="utf-8").splitlines()
    told = json.loads(line)
    assert (told["sample_id"], told["why"], told["tasks"]) == (MENU, why, [101, 102])
    assert "reviewer" not in line, "who said what is not for this list"


def test_corrected_instructions_that_differ_are_a_disagreement(reviewed: Reviewed) -> None:
    for reviewer, text in (("1", "Abrir"), ("2", "Cerrar")):
        reviewed.add(MENU, "corrected", reviewer, instruction=text, **boxed(MODEL_BOX))
    assert [look.why for look in reviewed.gold().second_look] == ["corrected instructions differ"]


def test_of_a_reviewer_only_counts_and_time_are_told(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "absent", "1")
    reviewed.add(SEARCH, "absent", "1")
    reviewed.add(EXIT, "correct", "2")
    work = reviewed.gold().reviewers
    assert [(w.reviewer, w.reviews, w.hours * 3600, w.median_s) for w in work] == [
        ("1", 2, pytest.approx(30), 15),
        ("2", 1, pytest.approx(30), 30),
    ]


def test_the_command_writes_gold_beside_the_reviews(
    reviewed: Reviewed, capsys: pytest.CaptureFixture[str]
) -> None:
    reviewed.add(MENU, "correct", "1", **boxed(MODEL_BOX))
    reviewed.add(EXIT, "correct", "1")
    reviewed.add(EXIT, "illegible", "2")
    main_ok(["gold", reviewed.dataset.uri])
    said = capsys.readouterr().out
    assert "Samples reviewed         2\n  accepted               1\n" in said
    assert "  to be looked at again  1\n" in said
    assert "  same verdict           0% of 1 pairs, kappa" in said
    folder = Path(reviewed.dataset.uri, "gold")
    assert {path.name for path in folder.iterdir()} == {
        "gold.parquet",
        "_gold-second-look.jsonl",
    }
    assert pq.read_table(folder / "gold.parquet").num_rows == 1
    assert pl.read_parquet(folder / "*.parquet")["outcome"].to_list() == ["accepted"]


def test_verify_looks_at_the_reviews_too(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "correct", point=Point(30, 40), **boxed(MODEL_BOX))
    reviewed.add(SEARCH, "none", skipped=True)
    found = verified(reviewed)
    assert (found.findings, found.rows["reviews"]) == ([], 2)
    part = next(Path(reviewed.dataset.uri, "reviews").iterdir())
    part.write_bytes(part.read_bytes()[:-9] + b"x" + part.read_bytes()[-8:])
    assert {finding.check for finding in verified(reviewed).findings} == {"part"}


def test_verify_names_a_review_that_no_rule_allows(reviewed: Reviewed) -> None:
    reviewed.add(MENU, "perhaps", point=Point(900, 40), **boxed(Box(10, 20, 500, 60)))
    rows = reviewed.dataset.reviews()
    storage, uri = reviewed.dataset.storage, reviewed.dataset.uri
    commit_reviews(storage, uri, rows.take([0, 0]), "http://ls", 5, START)
    found = verified(reviewed).findings
    assert {finding.detail for finding in found} == {
        "verdict 'perhaps'",
        "the box is not in order on its image",
        "one of the boxes is not in order on its image",
        "the point is not on its image",
        "1 times the same version of a review",
        "1 rows of versions that it holds already",
    }


def verified(reviewed: Reviewed) -> Verdict:
    return verify_dataset(open_dataset(reviewed.dataset.uri))


def main_ok(words: list[str]) -> None:
    try:
        main(words)
    except SystemExit as caught:
        assert not caught.code


def opinion(
    verdict: str = "correct", point: Point | None = None, boxes: Sequence[Box] = ()
) -> Opinion:
    return Opinion("r", 1, verdict, point, tuple(boxes))


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        (opinion(boxes=[MODEL_BOX]), opinion(boxes=[Box(10, 20, 50, 100)]), True),
        (opinion(boxes=[MODEL_BOX]), opinion(boxes=[Box(10, 20, 50, 101)]), False),
        (opinion(point=Point(10, 10)), opinion(point=Point(16, 10)), True),
        (opinion(point=Point(10, 10)), opinion(point=Point(17, 10)), False),
        (opinion(boxes=[MODEL_BOX]), opinion(point=Point(12, 22)), True),
        (opinion(boxes=[MODEL_BOX]), opinion(point=Point(9, 22)), False),
    ],
)
def test_places_agree_by_overlap_or_nearness(first: Opinion, second: Opinion, agree: bool) -> None:
    assert (disagreement([first, second], QueryKind.GROUNDING, SIZE) == "") is agree
    assert (disagreement([second, first], QueryKind.GROUNDING, SIZE) == "") is agree


def test_sets_of_boxes_agree_when_each_has_its_match() -> None:
    one, two, three = Box(0, 0, 10, 10), Box(20, 0, 30, 10), Box(40, 0, 50, 10)
    same = [opinion(boxes=[one, two]), opinion(boxes=[two, one])]
    more = [opinion(boxes=[one, two]), opinion(boxes=[one, two, three])]
    assert disagreement(same, QueryKind.LOCALIZATION, SIZE) == ""
    assert disagreement(more, QueryKind.LOCALIZATION, SIZE) == "places differ: IoU 0.67"
    assert pair_figures(*same).iou == 1


def test_kappa_is_that_of_fleiss_own_example() -> None:
    """Ten subjects, fourteen raters, five categories; kappa is 0.210."""
    counts = [
        (0, 0, 0, 0, 14),
        (0, 2, 6, 4, 2),
        (0, 0, 3, 5, 6),
        (0, 3, 9, 2, 0),
        (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0),
        (3, 2, 6, 3, 0),
        (2, 5, 3, 2, 2),
        (6, 5, 2, 1, 0),
        (0, 2, 2, 3, 7),
    ]
    ratings = [[str(k) for k, n in enumerate(row) for _ in range(n)] for row in counts]
    assert fleiss_kappa(ratings) == pytest.approx(0.210, abs=5e-4)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=0, max_size=4), max_size=8))
def test_kappa_is_at_most_one_and_one_only_when_all_agree(ratings: list[list[str]]) -> None:
    kappa = fleiss_kappa(ratings)
    rated = [sample for sample in ratings if len(sample) > 1]
    if kappa is None:
        assert len({mark for sample in rated for mark in sample}) <= 1
        return
    assert kappa <= 1 + 1e-12
    everyone = all(len(set(sample)) == 1 for sample in rated)
    assert (kappa == pytest.approx(1)) is everyone
