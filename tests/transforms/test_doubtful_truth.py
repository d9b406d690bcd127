"""Truth that cannot be what it says: another format, other pixels, nothing drawn."""

import json

import pytest
from PIL import Image, ImageDraw

from schemas.codes import QueryKind, QueryOrigin, RejectReason
from schemas.geometry import Box, Size
from schemas.records import Query, Truth, TruthBox
from transforms.blank_truth import is_blank, without_blank_truth
from transforms.sidecar import Sidecar, parse_sidecar

HD = Size(1920, 1080)
XYWH = [[879, 75, 599, 269], [1200, 40, 300, 20], [700, 900, 120, 40], [10, 10, 80, 30]]
CORNERS = [[600, 340, 680, 380], [10, 10, 60, 30], [900, 500, 960, 540]]


def parse(boxes: list[list[int]], size: Size | None = HD, **fields: object) -> Sidecar:
    queries = [{"instruction": f"Abra {i}", "bbox_px": box} for i, box in enumerate(boxes)]
    return parse_sidecar(json.dumps({"queries": queries, **fields}).encode(), size)


@pytest.mark.parametrize("extra", [0, 3, 10])
def test_many_boxes_that_end_before_they_begin_are_another_format(extra: int) -> None:
    read = parse(XYWH + [[i, i, i + 9, i + 9] for i in range(extra)])
    assert "truth_looks_xywh" in read.flags
    assert [query.truth for query in read.queries] == [None] * (4 + extra)
    (notice,) = read.rejects
    assert notice.reason is RejectReason.SIDECAR_INVALID
    assert "left, top, width, height" in notice.detail


def test_elements_count_as_boxes_too() -> None:
    elements = [{"bbox_px": box} for box in XYWH]
    read = parse_sidecar(json.dumps({"elements": elements, "queries": ["Abra"]}).encode(), HD)
    assert (read.elements, len(read.queries)) == ((), 1)
    assert "truth_looks_xywh" in read.flags


def test_one_bad_box_among_good_ones_is_only_dropped() -> None:
    read = parse([XYWH[0], *[[i, i, i + 9, 1000] for i in range(9)]])
    assert read.flags == ("truth_dropped",)
    assert sum(query.truth is not None for query in read.queries) == 9


def test_all_boxes_in_the_top_left_quarter_without_a_ratio_are_doubted() -> None:
    retina = Size(2560, 1440)
    assert parse(CORNERS, retina).flags == ("truth_in_corner",)
    assert parse(CORNERS, retina, device_pixel_ratio=2).flags == ()
    assert parse(CORNERS, retina, image_size=[2560, 1440]).flags == ()
    assert parse(CORNERS, Size(1280, 720)).flags == ()
    assert parse(CORNERS[:2], retina).flags == ()  # two boxes prove nothing


def drawn() -> Image.Image:
    image = Image.new("RGB", (800, 600), "white")
    ImageDraw.Draw(image).rectangle((100, 100, 180, 130), fill="blue")
    return image


@pytest.mark.parametrize(
    ("box", "blank"),
    [
        (Box(300, 300, 400, 340), True),
        (Box(0, 0, 800, 600), False),
        (Box(90, 90, 200, 140), False),  # the button and some page
        (Box(110, 110, 120, 120), True),  # inside one colour: nothing to tell it by
        (Box(100, 100, 181, 131), False),  # exactly a filled button: its edge shows
        (Box(99.5, 110, 100.5, 112), False),  # its edge, between two pixels
        (Box(184, 110, 190, 112), True),  # beside it: three pixels of page are seen
        (Box(799.2, 599.2, 800, 600), True),
    ],
)
def test_a_place_of_one_colour_is_blank(box: Box, blank: bool) -> None:
    assert is_blank(drawn(), box) is blank


def query(kind: QueryKind, *boxes: Box) -> Query:
    truth = Truth(True, tuple(TruthBox(box) for box in boxes))
    return Query(0, kind, "Abra", QueryOrigin.SIDECAR, truth=truth)


SHOWN, HIDDEN = Box(90, 90, 200, 140), Box(300, 300, 400, 340)


def test_a_target_that_is_not_drawn_is_no_truth() -> None:
    (asked,), found = without_blank_truth([query(QueryKind.GROUNDING, HIDDEN, SHOWN)], drawn())
    assert (asked.truth, found) == (None, True)


def test_other_places_that_are_not_drawn_are_left_out() -> None:
    for kind in QueryKind:
        (asked,), found = without_blank_truth([query(kind, SHOWN, HIDDEN)], drawn())
        assert asked.truth == Truth(True, (TruthBox(SHOWN),))
        assert found


def test_twelve_boxes_on_a_white_page_are_none() -> None:
    boxes = [Box(10 * i, 20, 10 * i + 8, 28) for i in range(12)]
    white = Image.new("RGB", (800, 600), "white")
    (asked,), found = without_blank_truth([query(QueryKind.LOCALIZATION, *boxes)], white)
    assert (asked.truth, found) == (None, True)


def test_absence_and_ignorance_stay_what_they_are() -> None:
    absent = Query(0, QueryKind.GROUNDING, "Abra", QueryOrigin.SIDECAR, truth=Truth(False))
    unknown = Query(1, QueryKind.GROUNDING, "Abra", QueryOrigin.SIDECAR)
    assert without_blank_truth([absent, unknown], drawn()) == ((absent, unknown), False)
