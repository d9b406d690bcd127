import dataclasses

import pytest

from schemas.codes import RejectReason, Stage
from schemas.errors import CountMismatchError
from schemas.records import ByteRange, Member, Problem, Reject, Shard, ShardKind, Unit
from transforms.counts import count_unit
from transforms.work import JudgedUnit, Refused

MEMBERS = tuple(Member(f"{i}.png", ByteRange(f"{i}.png", 0, 9)) for i in range(2))
UNIT = Unit(
    "u",
    Shard("/a.tar", ShardKind.TAR),
    0,
    MEMBERS,
    (Problem("x.txt", RejectReason.MEMBER_UNSUPPORTED, "no es una imagen"),),
)


def refused(reason: RejectReason, **kind: bool) -> Refused:
    return Refused(UNIT, Reject(Stage.READ, reason, "detalle", "0.png"), **kind)


ALL = (
    refused(RejectReason.MEMBER_UNSUPPORTED, is_member=True),
    refused(RejectReason.IMAGE_CORRUPT, is_member=True),
    refused(RejectReason.IMAGE_EMPTY, is_member=True),
    refused(RejectReason.QUERY_INVALID, is_query=True, before_screen=True),
    refused(RejectReason.SIDECAR_INVALID),
)


def unit(rejects: tuple[Refused, ...]) -> JudgedUnit:
    return JudgedUnit(UNIT, 0.0, (), (), rejects)


def test_members_queries_and_notices_add_up() -> None:
    counts = count_unit(unit(ALL), 0)
    assert (counts.members, counts.screens, counts.members_rejected) == (3, 0, 3)
    assert (counts.queries, counts.samples, counts.queries_rejected) == (1, 0, 1)
    assert counts.notices == 1
    assert counts.balanced


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_member_that_vanished_is_an_error(lost: int) -> None:
    without = tuple(entry for i, entry in enumerate(ALL) if i != lost)
    with pytest.raises(CountMismatchError, match=r"/a\.tar lost something"):
        count_unit(unit(without), 0)


def test_a_member_counted_twice_is_an_error() -> None:
    with pytest.raises(CountMismatchError):
        count_unit(unit((*ALL, ALL[0])), 0)


def test_every_way_to_be_out_of_balance_is_seen() -> None:
    good = count_unit(unit(ALL), 0)
    for name in ("members", "screens", "queries", "samples", "notices"):
        assert not dataclasses.replace(good, **{name: getattr(good, name) + 1}).balanced
    assert not dataclasses.replace(good, routes={"review": 1}).balanced
