"""What the dataset says of the samples whose reviews come in: sizes, questions and answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.dataset import Dataset
from schemas.codes import QueryKind, Role, SampleStatus
from schemas.geometry import Box, Point, Size
from schemas.records import Item
from schemas.reviews import AskedSample

_COLUMNS = (
    "sample_id",
    "element_index",
    "query_kind",
    "status",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "role",
    "label",
    "image_width",
    "image_height",
)
_ROLES: dict[str | None, Role] = {role.value: role for role in Role}


def asked_samples(dataset: Dataset, sample_ids: Collection[str]) -> dict[str, AskedSample]:
    """Of these ids, the samples that the dataset holds; parts are read one at a time.

    Raises:
        DatasetError: if a part is missing or damaged.
    """
    if not sample_ids:
        return {}
    wanted = pa.array(sorted(sample_ids), pa.string())
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for _, part in dataset.parts("annotations", _COLUMNS):
        for row in part.filter(pc.is_in(part["sample_id"], wanted)).to_pylist():
            grouped.setdefault(row["sample_id"], []).append(row)
    return {key: _asked(rows) for key, rows in grouped.items()}


def _asked(rows: list[Mapping[str, Any]]) -> AskedSample:
    ordered = sorted(rows, key=lambda row: int(row["element_index"]))
    first = ordered[0]
    return AskedSample(
        sample_id=first["sample_id"],
        kind=QueryKind(first["query_kind"]),
        status=SampleStatus(first["status"]),
        items=tuple(item for row in ordered if (item := _item(row)) is not None),
        size=Size(first["image_width"], first["image_height"]),
    )


def _item(row: Mapping[str, Any]) -> Item | None:
    point = None if row["x"] is None else Point(row["x"], row["y"])
    box = None if row["x1"] is None else Box(row["x1"], row["y1"], row["x2"], row["y2"])
    if point is None and box is None:
        return None
    return Item(point=point, box=box, label=row["label"], role=_ROLES.get(row["role"]))
