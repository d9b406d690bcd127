"""The rows of one unit: what they say of each other and of the image they are about."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.verify.asked import AskedAs, wrong_asked
from pipeline.verify.counts import wrong_counts
from pipeline.verify.findings import Verdict
from pipeline.verify.geometry import PLACES, bad_geometry, point_outside_box
from schemas.codes import QueryKind, QueryOrigin, RejectReason, Role, Route, SampleStatus, Stage
from schemas.commits import CommitRecord
from schemas.geometry import FrameKind

_IDS = {"sample_id": r"^[0-9a-f]{16,64}$", "screen_id": r"^[0-9a-f]{64}$"}
_CODES: dict[str, type[StrEnum]] = {
    "status": SampleStatus,
    "route": Route,
    "query_kind": QueryKind,
    "query_origin": QueryOrigin,
    "role": Role,
    "reason": RejectReason,
    "stage": Stage,
}


def check_rows(
    record: CommitRecord, tables: dict[str, pa.Table], said: AskedAs | None, verdict: Verdict
) -> None:
    """Check the three tables of a unit, row by row, against its record and against the head.

    Args:
        record: of the unit.
        tables: by name.
        said: how the head says that samples were asked, where that is known.
        verdict: is added to.
    """
    where = f"unit {record.unit_id}"
    for name, table in tables.items():
        for wrong, what in _cells(record, table):
            count = pc.sum(wrong).as_py() or 0
            if count:
                verdict.add("rows", where, f"{name}: {count} rows with {what}")
    annotations, screens = tables["annotations"], tables["screens"]
    for wrong, what in [*_places(annotations), *_candidates(annotations)]:
        if wrong.any():
            verdict.add("geometry", where, f"annotations: {int(wrong.sum())} {what}")
    for detail in [*_elements(annotations), *_images(annotations, screens)]:
        verdict.add("rows", where, f"annotations: {detail}")
    for detail in wrong_asked(said, record, annotations) if said else ():
        verdict.add("asked", where, f"annotations: {detail}")
    for detail in wrong_counts(record.counts, tables):
        verdict.add("counts", where, detail)


def _cells(record: CommitRecord, table: pa.Table) -> Iterator[tuple[pa.ChunkedArray, str]]:
    """Cells that are wrong by themselves, whatever the table."""
    yield pc.not_equal(table["unit_id"], record.unit_id), "the unit_id of another unit"
    yield pc.not_equal(table["shard"], record.shard), "the shard of another unit"
    for name, codes in _CODES.items():
        if name in table.column_names:
            known = pa.array([code.value for code in codes])
            unknown = pc.and_(pc.is_valid(table[name]), pc.invert(pc.is_in(table[name], known)))
            yield unknown, f"an unknown {name}"
    for name, form in _IDS.items():
        if name in table.column_names:
            yield pc.invert(pc.match_substring_regex(table[name], form)), f"no {name}"
    if "member" in table.column_names:
        yield pc.equal(table["member"], ""), "an empty member name"
    if "probability" in table.column_names:
        inside = pc.and_(
            pc.greater_equal(table["probability"], 0.0), pc.less_equal(table["probability"], 1.0)
        )
        yield pc.invert(inside), "a probability that is not in 0..1"
        frame = FrameKind.ORIGINAL_PX.value
        yield pc.not_equal(table["frame"], frame), f"another frame than {frame}"


def _places(table: pa.Table) -> Iterator[tuple[np.ndarray, str]]:
    columns = {name: table[name].combine_chunks() for name in PLACES}
    bad = bad_geometry(columns, _ints(table["image_width"]), _ints(table["image_height"]))
    yield bad, "rows whose geometry is outside the image, or not in order"
    outside = point_outside_box(columns) & ~_has_flag(table, "point_outside_box")
    yield outside & ~bad, "rows whose point lies outside their box, and no flag says so"
    located = np.asarray(table["x"].is_valid()) | np.asarray(table["x1"].is_valid())
    ok = np.asarray(pc.equal(table["status"], SampleStatus.OK.value))
    yield ok & ~located, "rows that are ok and have no place"
    none = _ints(table["element_count"]) == 0
    yield none & located, "rows with a place, of answers that have no element"


def _has_flag(table: pa.Table, flag: str) -> np.ndarray:
    """Which rows have a flag, for answers that said so themselves."""
    column = table["flags"].combine_chunks()
    parents = np.asarray(pc.list_parent_indices(column))
    has = np.zeros(table.num_rows, dtype=bool)
    has[parents[np.asarray(pc.equal(pc.list_flatten(column), flag), dtype=bool)]] = True
    return has


def _candidates(table: pa.Table) -> Iterator[tuple[np.ndarray, str]]:
    """Each of the k answers, read: stored on the first row of its sample."""
    column = table["candidates"].combine_chunks()
    parents = np.asarray(pc.list_parent_indices(column))
    flat = pc.list_flatten(column)
    widths, heights = _ints(table["image_width"])[parents], _ints(table["image_height"])[parents]
    columns = {name: pc.struct_field(flat, name) for name in PLACES}
    yield bad_geometry(columns, widths, heights), "candidates whose geometry cannot be"
    asked = _ints(pc.struct_field(table["sampling"], "k"))
    for name in ("candidates", "answers"):
        count = _ints(pc.fill_null(pc.list_value_length(table[name]), 0))
        first = _ints(table["element_index"]) == 0
        yield count > asked, f"samples with more {name} than were asked for"
        yield (count > 0) & ~first, f"rows with {name} that are not the first of their sample"


def _elements(table: pa.Table) -> Iterator[str]:
    """The rows of a sample are its elements, each once."""
    groups = table.group_by("sample_id").aggregate(
        [
            ("element_index", "min"),
            ("element_index", "max"),
            ("element_index", "count_distinct"),
            ("element_index", "count"),
            ("element_count", "min"),
            ("element_count", "max"),
            ("screen_id", "count_distinct"),
        ]
    )
    rows = _ints(groups["element_index_count"])
    expected = np.maximum(_ints(groups["element_count_max"]), 1)
    wrong = (
        (_ints(groups["element_index_min"]) != 0)
        | (_ints(groups["element_index_max"]) != expected - 1)
        | (_ints(groups["element_index_count_distinct"]) != rows)
        | (rows != expected)
        | (_ints(groups["element_count_min"]) != _ints(groups["element_count_max"]))
        | (_ints(groups["screen_id_count_distinct"]) != 1)
    )
    if wrong.any():
        some = groups["sample_id"].filter(pa.array(wrong)).to_pylist()[:3]
        yield f"{int(wrong.sum())} samples lack an element or have one twice ({', '.join(some)})"


def _images(annotations: pa.Table, screens: pa.Table) -> Iterator[str]:
    """Every annotation is about a screen of the unit, and knows its size."""
    columns = ("screen_id", "width", "height")
    sizes = {row["screen_id"]: row for row in screens.select(columns).to_pylist()}
    about = annotations.select(["screen_id", "image_width", "image_height"])
    for row in about.group_by(about.column_names).aggregate([]).to_pylist():
        screen = sizes.get(row["screen_id"])
        if screen is None:
            yield f"screen {row['screen_id'][:12]} is not among the unit's screens"
        elif (screen["width"], screen["height"]) != (row["image_width"], row["image_height"]):
            yield f"screen {row['screen_id'][:12]} has another size than its annotations say"


def _ints(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    return np.asarray(column.to_numpy(), dtype=np.int64)
