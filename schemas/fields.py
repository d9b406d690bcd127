"""How a described Arrow field is written, and the fields that several tables share."""

from __future__ import annotations

import pyarrow as pa


def field(name: str, kind: pa.DataType, about: str, *, nullable: bool = True) -> pa.Field:
    """A field with its description."""
    return pa.field(name, kind, nullable=nullable, metadata={"description": about})


def required(name: str, kind: pa.DataType, about: str) -> pa.Field:
    """A field that is never null, with its description."""
    return field(name, kind, about, nullable=False)


STRINGS = pa.list_(pa.string())

CORNER_FIELDS = [
    field("x1", pa.float64(), "left, original upright pixels"),
    field("y1", pa.float64(), "top, original upright pixels"),
    field("x2", pa.float64(), "right, original upright pixels"),
    field("y2", pa.float64(), "bottom, original upright pixels"),
]

BOX_FIELDS = [
    field("x", pa.float64(), "click x in original upright pixels, origin top left"),
    field("y", pa.float64(), "click y in original upright pixels, y grows downwards"),
    field("x1", pa.float64(), "left of the box, original upright pixels"),
    field("y1", pa.float64(), "top of the box, original upright pixels"),
    field("x2", pa.float64(), "right of the box, original upright pixels; x1 < x2"),
    field("y2", pa.float64(), "bottom of the box, original upright pixels; y1 < y2"),
]
