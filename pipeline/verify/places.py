"""Where screens and rejects are: no place twice, and every copy's first one is somewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.verify.ids import Unique
from schemas.codes import RejectReason, Stage
from schemas.commits import CommitRecord
from schemas.copies import locator

_WHOLE_MEMBER = (RejectReason.NEAR_DUPLICATE, RejectReason.IMAGE_TOO_NARROW)
"""Reasons that cost the member whatever the stage; elsewhere only reading and decoding do."""


class Places:
    """Collects where the screens and rejected members of all units are."""

    def __init__(self) -> None:
        self._members = Unique()
        self._named = Unique()
        self._firsts: dict[str, str] = {}

    def add(self, record: CommitRecord, tables: dict[str, pa.Table]) -> None:
        """The places of one unit."""
        screens, rejects = tables["screens"], tables["rejects"]
        self._members.add(record.unit_id, [*_locators(screens), *_locators(_lost(rejects))])
        named = rejects.filter(pc.is_valid(rejects["member"]))
        self._named.add(record.unit_id, {*_locators(screens), *_locators(named)})
        for first in pc.drop_null(screens["duplicate_of"]).unique().to_pylist():
            self._firsts.setdefault(first, record.unit_id)

    def doubled(self) -> list[tuple[int, list[str]]]:
        """As `Unique.doubled`, of members that are a screen or a reject."""
        return self._members.doubled()

    def nowhere(self) -> Iterator[tuple[str, str]]:
        """Unit and first copy, for each `duplicate_of` that is neither a screen nor a reject."""
        firsts = list(self._firsts)
        for first, is_there in zip(firsts, self._named.holds(firsts), strict=True):
            if not is_there:
                yield self._firsts[first], first


def _locators(table: pa.Table) -> list[str]:
    pairs = zip(table["shard"].to_pylist(), table["member"].to_pylist(), strict=True)
    return [locator(shard, member) for shard, member in pairs]


def _lost(rejects: pa.Table) -> pa.Table:
    """Rejects that stand in the place of a screen, rather than beside it."""
    read = pc.is_in(rejects["stage"], pa.array([Stage.READ.value, Stage.DECODE.value]))
    reasons = pa.array([reason.value for reason in _WHOLE_MEMBER])
    whole = pc.or_(read, pc.is_in(rejects["reason"], reasons))
    return rejects.filter(pc.and_(whole, pc.is_valid(rejects["member"])))
