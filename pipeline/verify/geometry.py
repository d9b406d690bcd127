"""Geometry of rows: finite, ordered, and inside the image, in original upright pixels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

PLACES = ("x", "y", "x1", "y1", "x2", "y2")
"""Columns of a point and a box, px."""

_SLACK = 1e-6
"""Pixels: what a conversion between frames in double precision may lose."""


def bad_geometry(
    columns: dict[str, pa.Array], widths: np.ndarray, heights: np.ndarray
) -> np.ndarray:
    """Which rows have geometry that cannot be.

    Args:
        columns: `x`, `y`, `x1`, `y1`, `x2`, `y2`, px, null where there is none.
        widths: of each row's image, px.
        heights: likewise.

    Returns:
        A flag per row.
    """
    values = {name: _floats(column) for name, column in columns.items()}
    absent = {name: np.asarray(column.is_null()) for name, column in columns.items()}
    bad = np.zeros(len(widths), dtype=bool)
    for pair in (("x", "y"), ("x1", "x2"), ("x1", "y1"), ("x1", "y2")):
        bad |= absent[pair[0]] != absent[pair[1]]
    for name, column in values.items():
        limit = widths if name.startswith("x") else heights
        inside = (column >= -_SLACK) & (column <= limit + _SLACK)
        bad |= ~absent[name] & ~inside  # a NaN compares as outside
    for low, high in (("x1", "x2"), ("y1", "y2")):
        bad |= ~absent[low] & ~(values[low] < values[high])
    return bad


def point_outside_box(columns: dict[str, pa.Array]) -> np.ndarray:
    """Which rows have a point and a box that does not hold it; columns as of `bad_geometry`."""
    values = {name: _floats(column) for name, column in columns.items()}
    with np.errstate(invalid="ignore"):  # a null is NaN, and compares as false
        beside = (values["x"] < values["x1"] - _SLACK) | (values["x"] > values["x2"] + _SLACK)
        above = (values["y"] < values["y1"] - _SLACK) | (values["y"] > values["y2"] + _SLACK)
    return np.asarray(beside | above)


def _floats(column: pa.Array) -> np.ndarray:
    return np.asarray(column.fill_null(np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)
