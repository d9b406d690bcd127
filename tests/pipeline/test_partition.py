"""`--partition i/n`: disjoint and complete parts of one plan, done by whoever comes."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_fixtures import job, oracle, scripted, shots, write_shard

from pipeline.config import LabelStudioConfig, LimitsConfig
from pipeline.dataset import open_dataset
from pipeline.partition import Partition, parse_partition, part_of
from pipeline.plan import Plan
from pipeline.report.stats import PushOutcome
from pipeline.run import run_job
from schemas.errors import ConfigError
from schemas.records import ByteRange, Member, Shard, ShardKind, Unit

SHARD = Shard("/a.tar", ShardKind.TAR)


def units(sizes: list[int]) -> list[Unit]:
    member = Member("a.png", ByteRange("a.png", 0, 1))
    return [Unit(str(n), SHARD, n, (member,) * size) for n, size in enumerate(sizes)]


@given(st.lists(st.integers(0, 70), max_size=40), st.integers(1, 60))
def test_parts_are_disjoint_complete_and_in_order(sizes: list[int], count: int) -> None:
    plan = units(sizes)
    parts = [part_of(plan, Partition(i, count)) for i in range(1, count + 1)]
    assert [unit.index for part in parts for unit in part] == list(range(len(plan)))


@given(st.integers(1, 500), st.integers(1, 20))
def test_parts_of_equal_units_differ_by_at_most_one_unit(total: int, count: int) -> None:
    sizes = [len(part_of(units([64] * total), Partition(i, count))) for i in range(1, count + 1)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "-1/4", "1", "a/b", "1/4/2", "", "1.0/2"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="partition"):
        parse_partition(text)


def test_partitions_in_any_order_make_the_same_dataset(tmp_path: Path) -> None:
    known = shots(9)
    shard = write_shard(tmp_path / "a.tar", known)
    apart, whole = job(tmp_path / "apart", shard), job(tmp_path / "whole", shard)
    outcomes = [
        run_job(apart, engine_factory=scripted(oracle(known)), partition=Partition(i, 3))
        for i in (2, 3, 1)
    ]
    run_job(whole, engine_factory=scripted(oracle(known)))
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0]
    one, other = (open_dataset(config.output.dataset) for config in (apart, whole))
    for table in ("annotations", "screens", "rejects"):
        assert one.table(table).equals(other.table(table)), table


def test_each_partition_reports_its_own_part_and_a_plain_run_ends_it_all(tmp_path: Path) -> None:
    known = shots(6)
    config = job(
        tmp_path,
        write_shard(tmp_path / "a.tar", known),
        label_studio=LabelStudioConfig(url="http://127.0.0.1:9"),
        limits=LimitsConfig(max_reject_share=0.0),
    )
    pushes = []

    def push(*_: object) -> PushOutcome:
        pushes.append(1)
        return PushOutcome()

    first, last = (
        run_job(
            config, engine_factory=scripted(oracle(known)), partition=Partition(i, 2), push=push
        )
        for i in (1, 2)
    )
    assert pushes == []
    for outcome, note in ((first, "2 units of other partitions"), (last, "all partitions are")):
        assert outcome.report.figures.stats.push is not None
        assert note in outcome.report.figures.stats.push.note
    assert first.report.json_uri.endswith("/dataset/_run/partition-1-of-2/report.json")
    told = [json.loads(Path(o.report.json_uri).read_bytes()) for o in (first, last)]
    assert [report["run"]["units_done"] for report in told] == [1, 2]
    assert [o.report.figures.counts.screens for o in (first, last)] == [2, 4]

    def forbidden() -> None:
        raise AssertionError("an engine was started for nothing")

    end = run_job(config, engine_factory=forbidden, push=push)
    assert (end.exit_code, end.report.figures.counts.screens, pushes) == (0, 6, [1])


def test_one_process_gets_larger_lots_than_workers_that_share_a_job() -> None:
    shard = Shard("s.tar", ShardKind.TAR, 1, "1")
    units = tuple(Unit(f"{n:04x}", shard, n, ()) for n in range(600))
    plan = Plan((shard,), units)
    sizes = [len(lot.units) for lot in plan.lots(frozenset())]
    assert sizes == [256, 256, 88]
    assert {len(lot.units) for lot in plan.lots(frozenset({"0000"}), spread=True)} == {64, 23}
    assert len(plan.lots(frozenset(), 300, spread=True)) == 2


def test_a_partition_without_units_is_done_at_once(tmp_path: Path) -> None:
    known = shots(2)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    outcomes = [
        run_job(config, engine_factory=scripted(oracle(known)), partition=Partition(i, 5))
        for i in range(1, 6)
    ]
    assert [outcome.exit_code for outcome in outcomes] == [0] * 5
    assert sorted(o.report.figures.stats.units_done for o in outcomes) == [0, 0, 0, 0, 1]
