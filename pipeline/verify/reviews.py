"""The reviews of a dataset: each part is what its record says, each version is there once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.dataset import Dataset
from pipeline.pull_records import review_records
from pipeline.verify.findings import Verdict
from pipeline.verify.ids import Unique
from pipeline.verify.parts import checked_part
from schemas.codes import Verdict as ReviewVerdict
from schemas.errors import DatasetError
from schemas.geometry import FrameKind
from schemas.reviews import NO_VERDICT, ReviewFlag

_VERDICTS = {NO_VERDICT, *(verdict.value for verdict in ReviewVerdict)}
_FLAGS = {flag.value for flag in ReviewFlag}
_ORIGINS = {None, "prediction", "prediction-changed", "manual"}


def check_reviews(dataset: Dataset, verdict: Verdict) -> None:
    """Check the committed parts of `reviews`, one at a time.

    Args:
        dataset: freshly opened.
        verdict: findings are added to it.

    Raises:
        StorageError: if the store cannot be listed.
    """
    try:
        records = review_records(dataset.storage, dataset.uri)
    except DatasetError as error:
        verdict.add("record", dataset.uri, str(error))
        return
    ids = Unique()
    for record in records:
        table = checked_part(dataset.storage, dataset.uri, record.part, verdict)
        if table is None:
            continue
        verdict.rows[record.part.table] = verdict.rows.get(record.part.table, 0) + table.num_rows
        versions = table["review_id"].unique().to_pylist()
        ids.add(record.part.path, versions)
        if len(versions) < table.num_rows:
            again = table.num_rows - len(versions)
            verdict.add(
                "doubled", record.part.path, f"{again} rows of versions that it holds already"
            )
        for row in table.to_pylist():
            for problem in _problems(row):
                verdict.add("review", f"{record.part.path}: {row['review_id']}", problem)
    for count, parts in ids.doubled():
        verdict.add("doubled", ", ".join(parts), f"{count} times the same version of a review")


def _problems(row: Mapping[str, Any]) -> list[str]:
    """What is wrong with one row of `reviews`."""
    problems = []
    if row["verdict"] not in _VERDICTS:
        problems.append(f"verdict {row['verdict']!r}")
    if row["frame"] != FrameKind.ORIGINAL_PX.value:
        problems.append(f"frame {row['frame']!r}")
    unknown = sorted(set(row["flags"]) - _FLAGS)
    problems += [f"flag {flag!r}" for flag in unknown]
    origins = {row["origin"], row["point_origin"]}
    problems += [f"origin {origin!r}" for origin in sorted(map(str, origins - _ORIGINS))]
    width, height = row["image_width"], row["image_height"]
    if row["x1"] is not None and not _inside(row, width, height):
        problems.append("the box is not in order on its image")
    if not all(_inside(box, width, height) for box in row["boxes"]):
        problems.append("one of the boxes is not in order on its image")
    if row["x"] is not None and not (0 <= row["x"] <= width and 0 <= row["y"] <= height):
        problems.append("the point is not on its image")
    if row["deleted"] and (row["verdict"] != NO_VERDICT or row["result"] is not None):
        problems.append("a deletion says something")
    return problems


def _inside(box: Mapping[str, Any], width: int, height: int) -> bool:
    across = 0 <= box["x1"] < box["x2"] <= width
    return bool(across and 0 <= box["y1"] < box["y2"] <= height)
