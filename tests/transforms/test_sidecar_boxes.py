"""Boxes under every declared convention, and declarations that the boxes contradict.

B011 (xywh), B033 (device pixel ratio) of the hard inputs, and their kin.
"""

import json
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from schemas.codes import RejectReason
from schemas.geometry import Box, Size
from transforms.sidecar import Sidecar, parse_sidecar
from transforms.sidecar_boxes import BoxConvention, BoxFormat, BoxFrame, Corners, Page, to_pixels
from transforms.sidecar_doubt import doubt, likely_convention

HD = Size(1920, 1080)
RETINA = Size(2560, 1440)
CONVENTIONS = [BoxConvention(a, b) for a in get_args(BoxFormat) for b in get_args(BoxFrame)]


def parse(stated: list[list[float]], size: Size, key: str = "bbox", **fields: object) -> Sidecar:
    queries = [{"instruction": f"Abra {i}", key: box} for i, box in enumerate(stated)]
    return parse_sidecar(json.dumps({"queries": queries, **fields}).encode(), size)


def stated_as(box: Corners, convention: BoxConvention, page: Page) -> Corners:
    """The inverse of `to_pixels`, written down apart from it."""
    assert page.size is not None
    width, height = float(page.size.width), float(page.size.height)
    units = {
        "px": (1.0, 1.0),
        "css": (page.ratio or 1.0, page.ratio or 1.0),
        "unit": (width, height),
        "norm_1000": (width / 1000, height / 1000),
        "percent": (width / 100, height / 100),
    }
    sx, sy = units[convention.frame]
    x1, y1, x2, y2 = box
    far = (x2 - x1, y2 - y1) if convention.format == "xywh" else (x2, y2)
    return x1 / sx, y1 / sy, far[0] / sx, far[1] / sy


def page_boxes(draw: st.DrawFn, size: Size) -> list[Corners]:
    """Boxes as a page has them: small, everywhere, one of them near the far corner."""
    found = []
    for _ in range(draw(st.integers(4, 12))):
        x, y = draw(st.integers(0, size.width - 40)), draw(st.integers(0, size.height - 30))
        w, h = draw(st.integers(12, 40)), draw(st.integers(10, 30))
        found.append((float(x), float(y), float(x + w), float(y + h)))
    corner = (size.width - 90.0, size.height - 50.0, size.width - 10.0, size.height - 10.0)
    return [*found, corner]


@st.composite
def pages(draw: st.DrawFn) -> tuple[Page, list[Corners]]:
    size = Size(draw(st.integers(1100, 3000)), draw(st.integers(1100, 3000)))
    return Page(size, draw(st.sampled_from([1.5, 2.0, 3.0]))), page_boxes(draw, size)


@given(pages(), st.sampled_from(CONVENTIONS))
def test_a_box_is_the_same_place_under_every_convention(
    page_and_boxes: tuple[Page, list[Corners]], convention: BoxConvention
) -> None:
    page, boxes = page_and_boxes
    for box in boxes:
        back = to_pixels(stated_as(box, convention, page), convention, page)
        assert back == pytest.approx(box)
    assert doubt([(stated_as(box, convention, page), page) for box in boxes], convention) is None


@given(pages(), st.sampled_from(CONVENTIONS), st.sampled_from(CONVENTIONS))
def test_a_wrong_declaration_is_never_followed_in_silence_where_boxes_leave_the_image(
    page_and_boxes: tuple[Page, list[Corners]], meant: BoxConvention, declared: BoxConvention
) -> None:
    """Wherever most boxes cannot be what is declared, the doubt names what they are."""
    page, boxes = page_and_boxes
    stated = [(stated_as(box, meant, page), page) for box in boxes]
    found = doubt(stated, declared)
    if found is not None and found.likely is not None:
        assert found.likely != declared
        assert not any(to_pixels(box, found.likely, on) is None for box, on in stated)
        assert f'frame = "{found.likely.frame}"' in found.said


@pytest.mark.parametrize("meant", [c for c in CONVENTIONS if c.frame in {"unit", "percent"}])
@given(pages())
def test_shares_taken_for_pixels_are_told(
    meant: BoxConvention, page_and_boxes: tuple[Page, list[Corners]]
) -> None:
    page, boxes = page_and_boxes
    stated = [(stated_as(box, meant, page), page) for box in boxes]
    found = doubt(stated, BoxConvention())
    assume(found is not None)  # a percent of a page may still be a pixel
    assert found is not None
    assert likely_convention(stated, BoxConvention()) == found.likely


def test_css_pixels_are_scaled_by_the_stated_ratio() -> None:
    """B033, with its own numbers."""
    read = parse(
        [[600, 340, 680, 380]], RETINA, boxes={"frame": "css"}, viewport=[1280, 720], dpr=2
    )
    assert [q.truth.boxes[0].box for q in read.queries if q.truth] == [Box(1200, 680, 1360, 760)]
    assert (read.flags, read.provenance.device_pixel_ratio) == ((), 2.0)


def test_css_pixels_are_scaled_by_the_viewport_where_no_ratio_is_stated() -> None:
    read = parse([[600, 340, 680, 380]], RETINA, boxes={"frame": "css"}, viewport_css=[1280, 720])
    assert [q.truth.boxes[0].box for q in read.queries if q.truth] == [Box(1200, 680, 1360, 760)]


def test_css_pixels_without_any_ratio_are_no_truth() -> None:
    read = parse([[600, 340, 680, 380]], RETINA, boxes={"frame": "css"})
    assert [q.truth for q in read.queries] == [None]
    assert "device_pixel_ratio" in read.rejects[0].detail


def test_a_ratio_that_the_image_contradicts_is_told_with_the_one_that_fits() -> None:
    read = parse([[60, 34, 68, 38]], Size(1280, 720), boxes={"frame": "css"}, viewport=[1280, 720],
                 dpr=2)  # fmt: skip
    assert "a ratio of 1 would fit" in read.rejects[0].detail.lower()
    assert [q.truth for q in read.queries] == [None]


def test_boxes_without_a_declaration_are_no_truth_and_are_asked_all_the_same() -> None:
    """B011: the format must be declared."""
    read = parse([[879, 75, 599, 269], [10, 10, 60, 30], [0, 0, 900, 40]], HD)
    assert [q.truth for q in read.queries] == [None] * 3
    (notice,) = read.rejects
    assert notice.reason is RejectReason.SIDECAR_INVALID
    assert 'format = "xywh", frame = "px"' in notice.detail
    declared = parse([[879, 75, 599, 269]], HD, boxes={"format": "xywh"})
    assert [q.truth.boxes[0].box for q in declared.queries if q.truth] == [Box(879, 75, 1478, 344)]


def test_the_sidecars_own_word_wins_over_the_jobs() -> None:
    data = json.dumps(
        {
            "boxes": {"frame": "percent"},
            "queries": [{"instruction": "Abra", "bbox": [0, 0, 50, 50]}],
        }
    ).encode()
    read = parse_sidecar(data, Size(200, 100), BoxConvention("xywh", "px"))
    assert [q.truth.boxes[0].box for q in read.queries if q.truth] == [Box(0, 0, 100, 50)]


@pytest.mark.parametrize("boxes", [{"format": "cxcywh"}, {"frame": "pulgadas"}, {"frame": 7}])
def test_an_unknown_convention_is_told_with_the_known_ones(boxes: dict[str, object]) -> None:
    read = parse([[1, 2, 30, 40]], HD, boxes=boxes)
    assert [q.truth for q in read.queries] == [None]
    assert "xyxy, xywh" in read.rejects[0].detail


def test_boxes_below_the_fold_are_dropped_and_contradict_nothing() -> None:
    """Lists of a whole page reach below the screenshot: no other convention makes them fit."""
    read = parse([[10, y, 1900, y + 30] for y in range(0, 3000, 100)], HD, key="bbox_px")
    assert read.flags == ("truth_dropped",)
    assert sum(q.truth is not None for q in read.queries) == 11


def test_accepted_and_element_boxes_follow_the_declaration_too() -> None:
    fields = {
        "boxes": {"format": "xywh", "frame": "unit"},
        "elements": [{"role": "button", "name": "Sí", "bbox": [0.5, 0.5, 0.25, 0.1]}],
        "queries": [
            {"instruction": "Acepte", "target": 0, "accept_bbox": [[0.0, 0.0, 0.1, 0.2]]},
        ],
    }
    read = parse_sidecar(json.dumps(fields).encode(), Size(400, 200))
    assert [known.box for known in read.elements] == [Box(200, 100, 300, 120)]
    (query,) = read.queries
    assert query.truth is not None
    assert [b.box for b in query.truth.boxes] == [Box(200, 100, 300, 120), Box(0, 0, 40, 40)]
