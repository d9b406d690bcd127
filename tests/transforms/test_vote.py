import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.geometry import Box, Point
from transforms.vote import connected_groups, dispersion, footprint, winning_supporters

coordinate = st.integers(0, 500)
boxes = st.builds(
    lambda x, y, w, h: Box(x, y, x + w, y + h),
    coordinate,
    coordinate,
    st.integers(1, 200),
    st.integers(1, 200),
)


def test_a_bare_point_votes_for_the_square_of_the_paper() -> None:
    assert footprint(Point(100, 60), None) == Box(75, 35, 125, 85)


def test_an_answer_with_a_box_votes_for_its_box() -> None:
    assert footprint(Point(15, 15), Box(10, 10, 20, 20)) == Box(10, 10, 20, 20)


def test_an_answer_without_geometry_has_no_vote() -> None:
    with pytest.raises(ValueError, match="no footprint"):
        footprint(None, None)


def test_three_that_overlap_win_over_two_that_overlap() -> None:
    three = [Box(0, 0, 10, 10), Box(2, 2, 12, 12), Box(4, 4, 14, 14)]
    two = [Box(100, 100, 300, 300), Box(110, 110, 310, 310)]
    assert winning_supporters([two[0], three[0], two[1], three[1], three[2]]) == (1, 3, 4)


def test_among_equal_votes_the_larger_region_wins() -> None:
    assert winning_supporters([Box(0, 0, 10, 10), Box(50, 50, 90, 90)]) == (1,)


def test_two_separate_regions_of_equal_votes_do_not_join() -> None:
    left = [Box(0, 0, 10, 10), Box(0, 0, 10, 10)]
    right = [Box(100, 0, 130, 10), Box(100, 0, 130, 10)]
    assert winning_supporters(left + right) == (2, 3)


@given(st.lists(boxes, min_size=1, max_size=8))
def test_the_winners_share_a_common_place_that_no_larger_group_has(given_boxes: list[Box]) -> None:
    winners = winning_supporters(given_boxes)
    most = max(
        sum(b.x1 <= x < b.x2 and b.y1 <= y < b.y2 for b in given_boxes)
        for x in {b.x1 for b in given_boxes}
        for y in {b.y1 for b in given_boxes}
    )
    assert len(winners) >= most
    assert winners == tuple(sorted(set(winners)))


def test_groups_join_through_a_common_neighbour() -> None:
    chain = [Box(0, 0, 10, 10), Box(8, 0, 18, 10), Box(16, 0, 26, 10), Box(90, 0, 99, 9)]
    assert connected_groups(chain) == [3, 1]


def test_boxes_that_only_touch_are_apart() -> None:
    assert connected_groups([Box(0, 0, 10, 10), Box(10, 0, 20, 10)]) == [1, 1]


def test_dispersion_is_zero_for_one_region_and_one_for_as_many_regions_as_votes() -> None:
    assert dispersion([5]) == 0.0
    assert dispersion([1, 1, 1, 1]) == pytest.approx(1.0)


def test_dispersion_of_four_against_one_by_hand() -> None:
    entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2)) / math.log(5)
    expected = 0.2 * (1 - 0.6) + 0.2 * entropy + 0.6 * (1 - 0.68) * 5 / 4
    assert dispersion([4, 1]) == pytest.approx(expected)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12))
def test_dispersion_stays_between_zero_and_one_and_ignores_order(masses: list[int]) -> None:
    value = dispersion(masses)
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(dispersion(list(reversed(masses))))
