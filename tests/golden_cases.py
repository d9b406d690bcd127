"""Golden tables by answer format, as cases for each profile that answers in that format."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import pytest

from schemas.codes import QueryKind
from schemas.geometry import FrameKind
from schemas.records import Item
from transforms.profiles.load import list_profiles, load_profile

Row = TypeVar("Row")
LEAST = 20


def golden_cases(
    tables: Mapping[str, Sequence[Row]],
) -> list[tuple[str, str, FrameKind | None, Row]]:
    """Profile, answer format, frame and row: every row under every profile of its format."""
    found: list[tuple[str, str, FrameKind | None, Row]] = []
    for name in list_profiles():
        profile = load_profile(name)
        answer_format = profile.tasks[QueryKind.GROUNDING].answer_format
        rows = tables.get(answer_format, [])
        assert not rows or len(rows) >= LEAST
        assert profile.frame is not None or not rows
        found += [(name, answer_format, profile.frame, row) for row in rows]
    return found


def halved_place(item: Item) -> tuple[float, ...]:
    """Box or point with x halved: the tables' screen is twice as wide as its coordinates say."""
    assert item.point is not None
    if item.box is None:
        return (item.point.x / 2, item.point.y)
    x1, y1, x2, y2 = item.box.corners
    assert (item.point.x, item.point.y) == pytest.approx(((x1 + x2) / 2, (y1 + y2) / 2))
    return (x1 / 2, y1, x2 / 2, y2)
