"""Are the boxes of the sidecars what they are declared to be? Asked before anything runs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.config import InputConfig
from pipeline.input_settings import box_convention, image_settings
from schemas.errors import InputError, MemberRejected
from schemas.records import Unit
from transforms.decode import decode_image
from transforms.shards import RawScreen, read_unit
from transforms.sidecar import sidecar_fields
from transforms.sidecar_boxes import BoxConvention, convention_of_shard
from transforms.sidecar_doubt import Doubt, doubt, fits
from transforms.sidecar_statement import Statement, read_statement

CHECKED_SHARDS = 4
"""Shards whose first screens are looked at: enough for a wrong setting, few enough for a plan."""

CHECKED_SCREENS = 8
"""Screens looked at in each of them."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the sidecar of one screen states."""

    member: str
    statement: Statement


def check_boxes(units: Sequence[Unit], source: InputConfig) -> None:
    """Stop a job whose declaration of boxes is contradicted by the first screens of a shard.

    A few boxes that do not fit are no contradiction: they are dropped, and said, where they are.

    Args:
        units: the whole plan.
        source: what is read, and how boxes are declared.

    Raises:
        InputError: naming the shard, a member, its box, and the likely declaration.
    """
    by_shard: dict[str, list[Unit]] = {}
    for unit in units:
        by_shard.setdefault(unit.shard.uri, []).append(unit)
    for of_shard in list(by_shard.values())[:CHECKED_SHARDS]:
        unit = _first_screens(of_shard)
        found = list(_statements(unit, source))
        for convention in dict.fromkeys(entry.statement.convention for entry in found):
            _judge(unit, [e for e in found if e.statement.convention == convention], convention)


def _first_screens(units: Sequence[Unit]) -> Unit:
    """The first screens of a shard that have a sidecar, or may have one, as one unit to read."""
    members = (m for unit in units for m in unit.members if m.sidecar or m.row is not None)
    few = tuple(itertools.islice(members, CHECKED_SCREENS))
    return dataclasses.replace(units[0], members=few, problems=())


def _statements(unit: Unit, source: InputConfig) -> Iterator[_Found]:
    """What the sidecars state; what cannot be read is told where it is annotated."""
    for raw in read_unit(unit, source.s3):
        fields = sidecar_fields(raw.sidecar) if isinstance(raw, RawScreen) else None
        if not isinstance(raw, RawScreen) or fields is None:
            continue
        try:
            size = decode_image(raw.data, image_settings(source)).size
        except MemberRejected:
            continue
        declared = convention_of_shard(raw.defaults) or box_convention(source)
        statement = read_statement(fields, size, declared)
        if statement.boxes or statement.problem:
            yield _Found(raw.member.name, statement)


def _judge(unit: Unit, found: Sequence[_Found], convention: BoxConvention | None) -> None:
    alone = [entry for entry in found if entry.statement.problem]
    if len(alone) == len(found):
        raise InputError(_message(unit, alone[0], Doubt(alone[0].statement.problem, 0, None)))
    boxes = [
        (entry, (box, entry.statement.page)) for entry in found for box in entry.statement.boxes
    ]
    doubted = doubt([stated for _, stated in boxes], convention)
    if doubted is not None and _is_systematic(found, convention):
        raise InputError(_message(unit, boxes[doubted.index][0], doubted))


def _is_systematic(found: Sequence[_Found], convention: BoxConvention | None) -> bool:
    """Whether most of the screens have a box that does not fit: one alone is a slip."""
    if convention is None:
        return True
    wrong = [
        entry
        for entry in found
        if any(not fits(box, convention, entry.statement.page) for box in entry.statement.boxes)
    ]
    return 2 * len(wrong) > len(found)


def _message(unit: Unit, found: _Found, doubted: Doubt) -> str:
    likely = doubted.likely
    setting = (
        f' In the job: [input.boxes] format = "{likely.format}", frame = "{likely.frame}".'
        if likely
        else ""
    )
    return f"{unit.shard.uri}, {found.member}: {doubted.said}.{setting}"
