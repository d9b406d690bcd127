from schemas.codes import QueryKind, QueryOrigin, SampleStatus
from schemas.geometry import Box, Point
from schemas.records import Item, Parsed, Query, Truth, TruthBox
from transforms.evaluate import match_count, match_f1, truth_hit
from transforms.score import Scored, score_answers


def query(truth: Truth | None, kind: QueryKind = QueryKind.GROUNDING) -> Query:
    return Query(0, kind, "Guardar", QueryOrigin.SIDECAR, truth=truth)


def answer(x: float, y: float) -> Scored:
    parsed = Parsed(SampleStatus.OK, (Item(point=Point(x, y)),))
    return score_answers(QueryKind.GROUNDING, [parsed])


ABSENT = score_answers(QueryKind.GROUNDING, [Parsed(SampleStatus.ABSENT)])
TARGET = Truth(True, (TruthBox(Box(10, 10, 20, 20)), TruthBox(Box(50, 50, 60, 60))))
GONE = Truth(present=False)


def test_a_point_in_the_target_or_in_another_accepted_box_is_right() -> None:
    assert truth_hit(query(TARGET), answer(15, 20)) is True
    assert truth_hit(query(TARGET), answer(55, 55)) is True
    assert truth_hit(query(TARGET), answer(21, 15)) is False


def test_absence_is_right_only_where_the_target_is_absent() -> None:
    assert truth_hit(query(GONE), ABSENT) is True
    assert truth_hit(query(GONE), answer(15, 15)) is False
    assert truth_hit(query(TARGET), ABSENT) is False


def test_without_truth_nothing_is_judged() -> None:
    assert truth_hit(query(None), answer(1, 1)) is None
    assert truth_hit(query(TARGET, QueryKind.LOCALIZATION), answer(15, 15)) is None


def test_each_true_box_is_matched_once() -> None:
    true = [Box(0, 0, 10, 10)]
    found = [Box(0, 0, 10, 10), Box(1, 0, 11, 10)]
    assert match_count(found, true) == 1
    assert match_f1(found, true) == 2 / 3


def test_overlap_of_just_a_half_counts_and_less_does_not() -> None:
    true = [Box(0, 0, 10, 10)]
    assert match_count([Box(0, 0, 10, 5)], true) == 1
    assert match_count([Box(0, 0, 10, 4.9)], true) == 0


def test_nothing_found_where_nothing_is_counts_as_perfect() -> None:
    assert match_f1([], []) == 1.0
    assert match_f1([], [Box(0, 0, 1, 1)]) == 0.0
