"""Typed views of stored rows: what `show`, the report and the push read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from schemas.codes import Role
from schemas.geometry import Box, Point, SeenImage, Size
from schemas.records import Completion, Item, TruthBox
from schemas.scored import Signals

_Row: TypeAlias = Mapping[str, Any]
"""One row as Arrow gives it; it does not leave this module."""

_ROLES: dict[str | None, Role] = {role.value: role for role in Role}


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """A row of `screens`: what is known of one screenshot and where its pixels are.

    Attributes:
        size: upright size in pixels.
        byte_offset: offset of the image in an uncompressed tar, else None.
        row: row of a Parquet shard, else None.
        orientation: EXIF orientation that was applied, 1 = none.
        masks: what no person may see, original upright pixels; None where nobody has said.
    """

    screen_id: str
    unit_id: str
    shard: str
    shard_kind: str
    member: str
    byte_offset: int | None
    byte_size: int
    row: int | None
    size: Size
    image_format: str
    orientation: int
    query_count: int
    flags: tuple[str, ...]
    app: str | None
    licence: str | None
    locale: str | None
    page_title: str | None
    color_scheme: str | None
    masks: tuple[Box, ...] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the k answers, read: its status and, where it has one, its place in original px."""

    status: str
    point: Point | None
    box: Box | None


@dataclass(frozen=True, slots=True)
class SampleRow:
    """The rows of `annotations` of one sample: the question, the answer, and what became of it.

    Attributes:
        items: the located things in original upright pixels, in the order of the answer.
        candidates: each of the k answers, read; `answers` is what the model said, unchanged.
        truth_present: whether the target is on the screen; None where nothing is known.
        truth: true boxes; for grounding the target comes first.
    """

    sample_id: str
    screen_id: str
    unit_id: str
    shard: str
    member: str
    kind: str
    index: int
    origin: str
    instruction: str
    locale: str | None
    status: str
    flags: tuple[str, ...]
    route: str
    probability: float
    probability_source: str
    signals: Signals
    items: tuple[Item, ...]
    candidates: tuple[Candidate, ...]
    answers: tuple[Completion, ...]
    size: Size
    seen: SeenImage
    prompt: str
    prompt_version: str
    profile: str
    model: str
    model_revision: str
    model_licence: str
    engine: str
    engine_version: str
    prompt_tokens: int
    output_tokens: int
    truth_present: bool | None
    truth: tuple[TruthBox, ...]
    truth_hit: bool | None


def screen_rows(table: pa.Table) -> Iterator[ScreenRow]:
    """The rows of a `screens` table, typed, in its order."""
    for row in table.to_pylist():
        yield ScreenRow(
            screen_id=row["screen_id"],
            unit_id=row["unit_id"],
            shard=row["shard"],
            shard_kind=row["shard_kind"],
            member=row["member"],
            byte_offset=row["byte_offset"],
            byte_size=row["byte_size"],
            row=row["row"],
            size=Size(row["width"], row["height"]),
            image_format=row["image_format"],
            orientation=row["orientation"],
            query_count=row["query_count"],
            flags=tuple(row["flags"]),
            app=row["app"],
            licence=row["licence"],
            locale=row["locale"],
            page_title=row["page_title"],
            color_scheme=row["color_scheme"],
            masks=_masks(row["masks"]),
        )


def _masks(boxes: Sequence[_Row] | None) -> tuple[Box, ...] | None:
    if boxes is None:
        return None
    return tuple(Box(box["x1"], box["y1"], box["x2"], box["y2"]) for box in boxes)


def sample_rows(table: pa.Table) -> Iterator[SampleRow]:
    """The samples of an `annotations` table, one each, in the order of their first row.

    Args:
        table: all columns; the rows of one sample may lie anywhere in it.
    """
    grouped: dict[str, list[_Row]] = {}
    for row in table.to_pylist():
        grouped.setdefault(row["sample_id"], []).append(row)
    for rows in grouped.values():
        yield _sample(sorted(rows, key=lambda row: int(row["element_index"])))


def _sample(rows: Sequence[_Row]) -> SampleRow:
    first = rows[0]
    truth = first["truth"] or {}
    return SampleRow(
        sample_id=first["sample_id"],
        screen_id=first["screen_id"],
        unit_id=first["unit_id"],
        shard=first["shard"],
        member=first["member"],
        kind=first["query_kind"],
        index=first["query_index"],
        origin=first["query_origin"],
        instruction=first["instruction"],
        locale=first["locale"],
        status=first["status"],
        flags=tuple(sorted({flag for row in rows for flag in row["flags"]})),
        route=first["route"],
        probability=first["probability"],
        probability_source=first["probability_source"],
        signals=_signals(first["signals"]),
        items=tuple(item for row in rows if (item := _item(row)) is not None),
        candidates=tuple(_candidate(row) for row in first["candidates"] or ()),
        answers=tuple(_completion(row) for row in first["answers"] or ()),
        size=Size(first["image_width"], first["image_height"]),
        seen=_seen(first),
        prompt=first["prompt"],
        prompt_version=first["prompt_version"],
        profile=first["profile"],
        model=first["model"],
        model_revision=first["model_revision"],
        model_licence=first["model_licence"],
        engine=first["engine"],
        engine_version=first["engine_version"],
        prompt_tokens=first["prompt_tokens"],
        output_tokens=first["output_tokens"],
        truth_present=truth.get("present"),
        truth=tuple(_truth_box(row) for row in truth.get("boxes") or ()),
        truth_hit=first["truth_hit"],
    )


def _signals(row: _Row) -> Signals:
    return Signals(
        agreement=row["agreement"],
        dispersion=row["dispersion"],
        regions=row["regions"],
        usable=row["usable"],
        total=row["total"],
    )


def _point(row: _Row) -> Point | None:
    return None if row["x"] is None else Point(row["x"], row["y"])


def _box(row: _Row) -> Box | None:
    return None if row["x1"] is None else Box(row["x1"], row["y1"], row["x2"], row["y2"])


def _item(row: _Row) -> Item | None:
    point, box = _point(row), _box(row)
    if point is None and box is None:
        return None
    return Item(point=point, box=box, label=row["label"], role=_ROLES.get(row["role"]))


def _candidate(row: _Row) -> Candidate:
    return Candidate(status=row["status"], point=_point(row), box=_box(row))


def _completion(row: _Row) -> Completion:
    return Completion(row["text"], row["finish_reason"], row["tokens"])


def _truth_box(row: _Row) -> TruthBox:
    box = Box(row["x1"], row["y1"], row["x2"], row["y2"])
    return TruthBox(box, role=row["role"], label=row["label"])


def _seen(row: _Row) -> SeenImage:
    seen = row["seen"]
    return SeenImage(
        original=Size(row["image_width"], row["image_height"]),
        seen=Size(seen["width"], seen["height"]),
        scale_x=seen["scale_x"],
        scale_y=seen["scale_y"],
        offset_x=seen["offset_x"],
        offset_y=seen["offset_y"],
    )
