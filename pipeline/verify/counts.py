"""The counts of a unit's record are those of its rows."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from schemas.commits import UnitCounts


def wrong_counts(counts: UnitCounts, tables: dict[str, pa.Table]) -> list[str]:
    """What the record says that the rows do not; what cannot be told from rows must balance."""
    found = _from_rows(tables)
    wrong = [
        f"{name}: {getattr(counts, name)} in the record, {value} in the rows"
        for name, value in found.items()
        if getattr(counts, name) != value
    ]
    asked = pc.sum(tables["screens"]["query_count"]).as_py() or 0
    if counts.queries < asked:
        wrong.append(f"queries: {counts.queries} in the record, {asked} of its screens")
    rejects = tables["rejects"].num_rows
    if counts.members_rejected + counts.queries_rejected + counts.notices != rejects:
        wrong.append(f"rejects: {rejects} rows, the record tells another number")
    return wrong


def _from_rows(tables: dict[str, pa.Table]) -> dict[str, int | dict[str, int]]:
    annotations = tables["annotations"]
    first = annotations.filter(pc.equal(annotations["element_index"], 0))
    return {
        "annotation_rows": annotations.num_rows,
        "samples": first.num_rows,
        "screens": tables["screens"].num_rows,
        "prompt_tokens": pc.sum(first["prompt_tokens"]).as_py() or 0,
        "output_tokens": pc.sum(first["output_tokens"]).as_py() or 0,
        "truth_judged": first.num_rows - first["truth_hit"].null_count,
        "truth_hits": pc.sum(first["truth_hit"]).as_py() or 0,
        "statuses": _tally(first, "status"),
        "routes": _tally(first, "route"),
        "rejects": _tally(tables["rejects"], "reason"),
    }


def _tally(table: pa.Table, column: str) -> dict[str, int]:
    return dict(sorted(Counter(table[column].to_pylist()).items()))
