import pytest

from schemas.codes import QueryKind, Route, SampleStatus
from schemas.geometry import Box, Point
from schemas.records import Item, Parsed
from schemas.scored import Signals
from transforms.route import RouteSettings, route_sample
from transforms.score import SINGLE_PROBABILITY, Scored, score_answers, succession


def at(x: float, y: float) -> Parsed:
    return Parsed(SampleStatus.OK, (Item(point=Point(x, y)),))


def boxed(x1: float, y1: float, x2: float, y2: float) -> Parsed:
    box = Box(x1, y1, x2, y2)
    return Parsed(SampleStatus.OK, (Item(point=box.center, box=box),))


ABSENT = Parsed(SampleStatus.ABSENT)
BROKEN = Parsed(SampleStatus.UNPARSEABLE, flags=("not_json",))


def score(*answers: Parsed) -> Scored:
    return score_answers(QueryKind.GROUNDING, answers)


def test_five_that_agree_give_the_rule_of_succession() -> None:
    scored = score(*[at(100, 100)] * 5)
    assert scored.status is SampleStatus.OK
    assert scored.probability == pytest.approx(6 / 7)
    assert scored.signals == Signals(1.0, 0.0, 1, 5, 5)


def test_an_outlier_lowers_agreement_and_does_not_move_the_point() -> None:
    scored = score(at(100, 100), at(102, 100), at(104, 100), at(101, 101), at(900, 700))
    assert scored.items[0].point is not None
    assert scored.items[0].point.x <= 104
    assert scored.signals.agreement == pytest.approx(0.8)
    assert 0 < scored.probability < succession(4, 5)


def test_the_consensus_is_an_answer_the_model_gave() -> None:
    answers = [boxed(10, 10, 50, 30), boxed(12, 10, 52, 30), boxed(11, 10, 51, 30)]
    assert score(*answers).items == answers[2].items


def test_absent_wins_only_with_more_votes_than_any_place() -> None:
    assert score(ABSENT, ABSENT, ABSENT, at(5, 5), at(900, 5)).status is SampleStatus.ABSENT
    assert score(ABSENT, ABSENT, at(5, 5), at(5, 5)).status is SampleStatus.OK


def test_all_absent_is_as_certain_as_all_in_one_place() -> None:
    assert score(*[ABSENT] * 5).probability == pytest.approx(6 / 7)


def test_broken_answers_count_against_certainty() -> None:
    clean, with_broken = score(*[at(5, 5)] * 3), score(*[at(5, 5)] * 3, BROKEN, BROKEN)
    assert with_broken.status is SampleStatus.OK
    assert with_broken.signals.usable == 3
    assert with_broken.probability < clean.probability


def test_nothing_usable_says_the_commonest_failure_and_zero() -> None:
    scored = score(BROKEN, BROKEN, Parsed(SampleStatus.NO_ANSWER))
    assert (scored.status, scored.probability) == (SampleStatus.UNPARSEABLE, 0.0)
    assert scored.flags == ("not_json",)
    assert len(scored.candidates) == 3


def test_a_single_answer_claims_no_certainty() -> None:
    scored = score(at(5, 5))
    assert scored.probability == SINGLE_PROBABILITY
    assert "no evidence" in scored.probability_source


RULE = RouteSettings(threshold=0.8, audit_share=0.25)


def test_below_the_threshold_a_person_looks() -> None:
    assert route_sample("a", score(at(5, 5), at(500, 5)), RULE) is Route.REVIEW


def test_unusable_answers_go_where_the_settings_say() -> None:
    scored = score(BROKEN, BROKEN)
    assert route_sample("a", scored, RULE) is Route.REVIEW
    assert route_sample("a", scored, RouteSettings(0.0, 0.0, Route.REJECT)) is Route.REJECT


def test_audit_is_a_repeatable_share_of_the_accepted() -> None:
    scored = score(*[at(5, 5)] * 5)
    routes = [route_sample(f"sample-{i}", scored, RULE) for i in range(2000)]
    assert routes == [route_sample(f"sample-{i}", scored, RULE) for i in range(2000)]
    assert set(routes) == {Route.ACCEPT, Route.AUDIT}
    # Binomial(2000, 0.25): 7 standard deviations either way.
    assert 365 < routes.count(Route.AUDIT) < 635
