"""Judged units to Arrow tables: one row per element, one per screen, one per reject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from schemas import tables
from schemas.geometry import Box, FrameKind, Point
from schemas.provenance import Provenance
from schemas.records import Item, Parsed, Reject, Screen, Truth
from schemas.scored import Signals
from transforms.compose import Question
from transforms.source_text import clean
from transforms.work import Judged, JudgedUnit

Cell: TypeAlias = "str | int | float | bool | datetime | Sequence[Cell] | Mapping[str, Cell] | None"
Row: TypeAlias = "dict[str, Cell]"


@dataclass(frozen=True, slots=True)
class RowSettings:
    """What every annotation row says of the run."""

    profile: str
    model: str
    model_revision: str
    model_licence: str
    engine: str
    engine_version: str


def annotation_rows(unit: JudgedUnit, settings: RowSettings) -> list[Row]:
    """Rows of `annotations`: one per element, and one for a sample without elements."""
    return [row for judged in unit.judged for row in _sample_rows(unit, judged, settings)]


def screen_rows(unit: JudgedUnit) -> list[Row]:
    """Rows of `screens`, in the order of the shard."""
    return [_screen_row(unit, screen) for screen in unit.screens]


def reject_rows(unit: JudgedUnit) -> list[Row]:
    """Rows of `rejects`, in the order they were found."""
    return [
        {"unit_id": unit.unit.unit_id, "shard": unit.unit.shard.uri, **_cells(refused.reject)}
        for refused in unit.refused
    ]


def to_table(name: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of the frozen schema; zero rows still carry it.

    Lone surrogates become U+FFFD.

    Raises:
        ValueError: if a row has a field that the schema does not know, or lacks a required one.
    """
    schema = tables.TABLES[name]
    known = set(schema.names)
    required = {field.name for field in schema if not field.nullable}
    for row in rows:
        if row.keys() - known:
            raise ValueError(f"{name}: unknown fields {sorted(row.keys() - known)}")
        missing = sorted(key for key in required if row.get(key) is None)
        if missing:
            raise ValueError(f"{name}: required fields are null: {missing}")
    try:
        return pa.Table.from_pylist(list(rows), schema=schema)
    except UnicodeEncodeError:  # one lone surrogate, from a model or an error, must not cost a unit
        return pa.Table.from_pylist([_writable_row(row) for row in rows], schema=schema)


def _cells(record: Signals | Provenance | Reject) -> Row:
    """A flat record's fields; `asdict` would copy each value, at eight times the cost."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _writable_row(row: Mapping[str, Cell]) -> Row:
    return {name: _writable(cell) for name, cell in row.items()}


def _writable(cell: Cell) -> Cell:
    """`cell` with U+FFFD for what no file format can hold."""
    if isinstance(cell, str):
        return clean(cell)
    if isinstance(cell, Mapping):
        return _writable_row(cell)
    return [_writable(item) for item in cell] if isinstance(cell, Sequence) else cell


def _sample_rows(unit: JudgedUnit, judged: Judged, settings: RowSettings) -> list[Row]:
    items: Sequence[Item | None] = judged.scored.items or (None,)
    shared = {
        **_query_cells(unit, judged),
        **_verdict_cells(judged),
        **_model_cells(judged, settings),
    }
    first = _first_row_cells(judged)
    return [
        {
            **shared,
            "element_index": index,
            "element_count": len(judged.scored.items),
            **_geometry_cells(item),
            **(first if index == 0 else {}),
        }
        for index, item in enumerate(items)
    ]


def _query_cells(unit: JudgedUnit, judged: Judged) -> Row:
    sample, screen = judged.question.sample, judged.screen
    query = sample.query
    return {
        "sample_id": sample.sample_id,
        "screen_id": screen.screen_id,
        "unit_id": unit.unit.unit_id,
        "shard": unit.unit.shard.uri,
        "member": screen.member.name,
        "query_kind": query.kind.value,
        "query_index": query.index,
        "query_origin": query.origin.value,
        "instruction": query.instruction,
        "instruction_raw": query.instruction_raw,
        "locale": screen.provenance.locale,
        "image_width": screen.size.width,
        "image_height": screen.size.height,
        "image_licence": screen.provenance.licence,
    }


def _verdict_cells(judged: Judged) -> Row:
    scored = judged.scored
    return {
        "status": scored.status.value,
        "flags": list(scored.flags),
        "route": judged.route.value,
        "probability": scored.probability,
        "probability_source": scored.probability_source,
        "signals": _cells(scored.signals),
        "truth_hit": judged.truth_hit,
    }


def _model_cells(judged: Judged, settings: RowSettings) -> Row:
    question = judged.question
    seen = question.sample.seen
    return {
        "frame": FrameKind.ORIGINAL_PX.value,
        "seen": {
            "width": seen.seen.width,
            "height": seen.seen.height,
            "scale_x": seen.scale_x,
            "scale_y": seen.scale_y,
            "offset_x": seen.offset_x,
            "offset_y": seen.offset_y,
        },
        "prompt": question.sample.prompt,
        "prompt_version": question.sample.prompt_version,
        "profile": settings.profile,
        "model": settings.model,
        "model_revision": settings.model_revision,
        "model_licence": settings.model_licence,
        "engine": settings.engine,
        "engine_version": settings.engine_version,
        "sampling": _sampling_cell(question),
        "structured_output": question.task.structured,
        "prompt_tokens": judged.answer.prompt_tokens,
        "image_tokens": judged.answer.image_tokens,
        "output_tokens": sum(c.token_count for c in judged.answer.completions),
    }


def _sampling_cell(question: Question) -> Row:
    return {
        "k": question.n,
        **question.sampling.model_dump(),
        "max_tokens": question.task.max_tokens,
        "seed": question.seed,
    }


def _first_row_cells(judged: Judged) -> Row:
    """What belongs to the sample rather than to an element: long, so it is stored once."""
    return {
        "candidates": [
            _candidate_cell(index, parsed) for index, parsed in enumerate(judged.scored.candidates)
        ],
        "answers": [
            {"text": c.text, "finish_reason": c.finish_reason, "tokens": c.token_count}
            for c in judged.answer.completions
        ],
        "truth": _truth_cell(judged.question.sample.query.truth),
    }


def _candidate_cell(index: int, parsed: Parsed) -> Row:
    item = parsed.items[0] if parsed.items else Item()
    return {
        "sample": index,
        "status": parsed.status.value,
        **_point_cells(item.point),
        **_corner_cells(item.box),
        "flags": list(parsed.flags),
    }


def _truth_cell(truth: Truth | None) -> Row | None:
    if truth is None:
        return None
    boxes = [
        {**_corner_cells(known.box), "role": known.role, "label": known.label}
        for known in truth.boxes
    ]
    return {"present": truth.present, "boxes": boxes}


def _geometry_cells(item: Item | None) -> Row:
    if item is None:
        return {}
    role = item.role.value if item.role else None
    return {
        **_point_cells(item.point),
        **_corner_cells(item.box),
        "role": role,
        "label": item.label,
    }


def _point_cells(point: Point | None) -> Row:
    return {"x": point.x, "y": point.y} if point else {"x": None, "y": None}


def _corner_cells(box: Box | None) -> Row:
    corners = box.corners if box else (None, None, None, None)
    return dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))


def _screen_row(unit: JudgedUnit, screen: Screen) -> Row:
    return {
        "screen_id": screen.screen_id,
        "unit_id": unit.unit.unit_id,
        "shard": unit.unit.shard.uri,
        "shard_kind": unit.unit.shard.kind.value,
        "member": screen.member.name,
        "byte_offset": screen.member.image.offset,
        "row": screen.member.row,
        "byte_size": screen.byte_size,
        "image_format": screen.image_format,
        "image_mode": screen.image_mode,
        "width": screen.size.width,
        "height": screen.size.height,
        "orientation": screen.orientation,
        "frame_count": screen.frame_count,
        "query_count": len(screen.queries),
        "masks": None if screen.masks is None else [_corner_cells(box) for box in screen.masks],
        "flags": list(screen.flags),
        **_cells(screen.provenance),
        "sidecar_encoding": screen.sidecar_encoding,
        **_likeness_cells(screen),
    }


def _likeness_cells(screen: Screen) -> Row:
    """What the plan found out about these very bytes; nothing, if they have changed since."""
    copy, look = screen.member.copy, screen.member.look
    is_copy = copy is not None and copy.screen_id == screen.screen_id
    is_known = look is not None and look.screen_id == screen.screen_id
    return {
        "duplicate_of": copy.first if copy and is_copy else None,
        "perceptual_hash": look.perceptual_hash if look and is_known else None,
        "near_duplicate_of": look.near if look and is_known else None,
    }
