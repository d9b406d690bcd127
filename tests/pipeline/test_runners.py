"""Runners whose workers are not the job's own thread: Beam's Job API, and what a cluster brings."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard

from pipeline.beam_options import beam_options
from pipeline.config import RunConfig
from pipeline.dataset import open_dataset
from pipeline.launch import _told_error
from pipeline.observer import Observer
from pipeline.run import run_job
from pipeline.turns import in_turn
from pipeline.verify import verify_dataset
from schemas.commits import CommitRecord
from schemas.errors import ConfigError, EngineError
from transforms.engines.holder import hold_engine, release_engine

JOB_API = ("--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK")


class Told(Observer):
    """Keeps what a run tells of its units."""

    def __init__(self) -> None:
        self.units: list[str] = []

    def advance(self, record: CommitRecord) -> None:
        self.units.append(record.unit_id)


def nothing() -> None:
    """No watch."""


def test_the_job_api_makes_the_dataset_of_a_local_run(tmp_path: Path) -> None:
    known = shots(4)
    shard = write_shard(tmp_path / "a.tar", known)
    tables, told = [], Told()
    for name, flags in (("local", ()), ("away", JOB_API)):
        (tmp_path / name).mkdir()
        config = job(tmp_path / name, shard, run=RunConfig(heartbeat_seconds=0.2))
        watch = told if flags else Observer()
        assert run_job(config, flags, observer=watch, engine_factory=scripted(oracle(known)))
        dataset = open_dataset(config.output.dataset)
        assert verify_dataset(dataset).whole
        rows = [dataset.table(table).to_pylist() for table in ("annotations", "screens")]
        tables.append([sorted(map(str, found)) for found in rows])
    assert tables[0] == tables[1]
    assert sorted(told.units) == sorted(record.unit_id for record in dataset.commits())


def test_lots_from_several_threads_take_turns_in_one_thread() -> None:
    inside: list[int] = []
    together: list[int] = []
    owners: set[int] = set()

    def lot() -> Iterator[int]:
        for number in range(20):
            inside.append(number)
            together.append(len(inside))
            owners.add(threading.get_ident())
            inside.pop()
            yield number

    results: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(list(in_turn(lot, nothing))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [list(range(20))] * 4
    assert set(together) == {1}
    assert len(owners) == 1


def test_an_error_in_a_turn_reaches_who_waits_and_the_next_turn_is_served() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise EngineError("gone")

    turn = in_turn(fails, nothing)
    assert next(turn) == 1
    with pytest.raises(EngineError, match="gone"):
        next(turn)
    assert list(in_turn(lambda: (n for n in (1, 2)), nothing)) == [1, 2]


def test_a_process_that_outlives_a_run_does_not_lend_its_engine_to_the_next() -> None:
    factory = scripted(oracle(shots(1)))
    try:
        first = hold_engine(factory, "one").engine
        assert hold_engine(factory, "one").engine is first
        assert hold_engine(factory, "two").engine is not first
    finally:
        release_engine()


def test_an_error_told_as_text_keeps_its_exit_code() -> None:
    stack = (
        "Traceback (most recent call last):\n"
        '  File "annotate.py", line 39, in annotate_here\n'
        "schemas.errors.EngineError: no memory left\n\n"
        "During handling of the above exception, another exception occurred:\n"
        "RuntimeError: bundle failed"
    )
    error = _told_error(stack)
    assert isinstance(error, EngineError)
    assert str(error) == "no memory left"
    assert _told_error("RuntimeError: bundle failed") is None


def test_without_dask_its_runner_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipeline.beam_options.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"apache-beam\[dask\]"):
        beam_options(["--runner=apache_beam.runners.dask.dask_runner.DaskRunner"])
