"""Units and lots: what is in them, and that their ids depend on content alone."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from shard_fixtures import png, sidecar, tar_bytes, units_of, write

from schemas.codes import RejectReason
from schemas.ids import sha256_hex
from schemas.records import ByteRange, Member, Problem, Shard, ShardKind
from transforms.decode import ImageSettings, decode_image
from transforms.shards import RawScreen, ShardIndex, make_lots, read_unit, split_units

SHARD = Shard("/datos/x.tar", ShardKind.TAR, 100)


def members(count: int) -> tuple[Member, ...]:
    return tuple(Member(f"{i}.png", ByteRange(f"{i}.png", i * 512, 9)) for i in range(count))


@given(st.integers(0, 200), st.integers(1, 70), st.integers(1, 9))
def test_every_member_is_in_one_unit_and_every_unit_in_one_lot(
    count: int, unit_screens: int, lot_units: int
) -> None:
    units = split_units(SHARD, ShardIndex(members(count)), unit_screens)
    lots = make_lots(units, lot_units)
    assert [m for unit in units for m in unit.members] == list(members(count))
    assert [unit for lot in lots for unit in lot.units] == units
    assert all(len(unit.members) <= unit_screens for unit in units)
    assert all(len(lot.units) <= lot_units for lot in lots)
    assert len({unit.unit_id for unit in units}) == len(units) >= 1


def test_a_shard_with_problems_alone_is_one_unit() -> None:
    problem = Problem(None, RejectReason.SHARD_UNREADABLE, "roto")
    (unit,) = split_units(SHARD, ShardIndex((), (problem,)), 64)
    assert (unit.members, unit.problems, unit.index) == ((), (problem,), 0)


def test_units_before_a_cut_keep_their_ids_when_the_shard_is_completed(tmp_path: Path) -> None:
    whole = tar_bytes([(f"{i}.png", png(16 + i, 12)) for i in range(6)])
    cut = units_of(write(tmp_path / "x.tar", whole[:3800]), 2)
    full = units_of(write(tmp_path / "x.tar", whole), 2)
    assert cut[0].unit_id == full[0].unit_id
    assert [unit.unit_id for unit in cut[1:]] != [unit.unit_id for unit in full[1:]]


def test_ids_change_with_names_sizes_versions_and_problems() -> None:
    one = Member("a.png", ByteRange("a.png", 512, 9))
    other_size = Member("a.png", ByteRange("a.png", 512, 10))
    with_sidecar = Member("a.png", ByteRange("a.png", 512, 9), ByteRange("a.json", 2048, 5))
    problem = Problem("b.txt", RejectReason.MEMBER_UNSUPPORTED, "x")
    ids = {
        split_units(shard, ShardIndex(found, problems), 64)[0].unit_id
        for shard, found, problems in [
            (SHARD, (one,), ()),
            (SHARD, (other_size,), ()),
            (SHARD, (with_sidecar,), ()),
            (SHARD, (one,), (problem,)),
            (Shard("/datos/y.tar", ShardKind.TAR, 100), (one,), ()),
            (Shard("/datos/x.tar", ShardKind.TAR, 100, '"etag"'), (one,), ()),
        ]
    }
    assert len(ids) == 6


def test_an_id_is_the_same_on_every_machine() -> None:
    (unit,) = split_units(SHARD, ShardIndex(members(1)), 64)
    assert unit.unit_id == "e4710ff481bc9a80d550f786487e91fc"


def test_a_screen_is_the_same_whatever_held_it(tmp_path: Path) -> None:
    image, words = png(30, 20, (1, 2, 3)), sidecar("Contraseña")
    write(tmp_path / "f/a.png", image)
    write(tmp_path / "f/a.json", words)
    write(tmp_path / "x.tar", tar_bytes([("a.json", words), ("a.png", image)]))
    table = pa.table({"image": [image], "json": [words.decode()]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    write(tmp_path / "x.parquet", buffer.getvalue())
    seen = set()
    for name in ("f", "x.tar", "x.parquet"):
        (unit,) = units_of(f"{tmp_path}/{name}")
        (screen,) = read_unit(unit)
        assert isinstance(screen, RawScreen)
        pixels = decode_image(screen.data, ImageSettings()).image.tobytes()
        seen.add((sha256_hex(screen.data), screen.sidecar, pixels))
    assert len(seen) == 1
