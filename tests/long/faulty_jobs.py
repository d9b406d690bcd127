"""Jobs that are killed and hindered, in real processes, and what they must have made in the end."""

# ruff: noqa: E402 - run as a script, it has to say first where its neighbours are

import logging
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in (TESTS.parent, TESTS, TESTS / "pipeline", TESTS / "long"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import pyarrow as pa
import pyarrow.parquet as pq
from fake_studio import TOKEN, FakeState
from job_fixtures import Shot, job, oracle, png, shots, sidecar, write_shard
from s3_server import S3Server, set_credentials

from pipeline.clean import clean, leftovers
from pipeline.config import InputConfig, JobConfig, LabelStudioConfig, LimitsConfig, OutputConfig
from pipeline.dataset import Dataset, open_dataset
from pipeline.partition import Partition
from pipeline.verify import verify_dataset
from schemas.errors import PantallaError
from schemas.records import Answer
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency

TABLES = ("annotations", "screens", "rejects")
VOLATILE: tuple[str, ...] = ()
"""Columns that may differ from an undisturbed run: none. What a worker spent (pid, seconds) stands
in the commit records, not in the rows."""

COUNT = 8
PREFIXES = ("tar", "parquet", "carpeta")
BUCKET = "fallos"
STORAGE_LOST = 4
DEADLINE_SECONDS = 600


@dataclass(frozen=True)
class Faulty:
    """One job, picklable, for a process of its own.

    Attributes:
        seconds: what the engine takes for a few answers.
        partitions: processes that each do a part; 1 is a whole job.
        twins: processes started by mistake on the same job at once.
        push: bring review rows to the Label Studio at `studio` instead of annotating.
    """

    config: JobConfig
    seconds: float = 0.0
    partitions: int = 1
    twins: int = 1
    studio: str = ""
    push: bool = False


class PacedEngine(ScriptedEngine):
    """Answers a few requests at a time and takes its time, as a real one does."""

    def __init__(self, seconds: float) -> None:
        known = [shot for prefix in PREFIXES for shot in shots(COUNT, prefix)]
        super().__init__(oracle(known), ScriptedLatency(hold=1, per_collect=3), 6)
        self._seconds = seconds
        self._random = random.Random(os.getpid())

    def collect(self) -> list[Answer]:
        time.sleep(self._seconds * self._random.uniform(0.5, 1.5))
        return super().collect()


def make_shards(folder: Path) -> list[Path]:
    """A tar, a Parquet file and a folder; one member is broken, two are repeated."""
    tar = write_shard(folder / "a.tar", shots(COUNT, "tar"))
    rows = [
        {"image": png(shot), "sidecar": sidecar(shot).decode(), "name": f"{shot.name}.png"}
        for shot in [*shots(COUNT, "parquet"), shots(1, "tar")[0]]
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "b.parquet")
    images = folder / "imagenes"
    images.mkdir()
    for shot in shots(COUNT, "carpeta"):
        (images / f"{shot.name}.png").write_bytes(png(shot))
        (images / f"{shot.name}.json").write_bytes(sidecar(shot))
    (images / "rota.png").write_bytes(png(Shot("rota"))[:120])
    repeated = shots(2, "parquet")[1]
    (images / "repetida.png").write_bytes(png(repeated))
    (images / "repetida.json").write_bytes(sidecar(repeated))
    return [tar, folder / "b.parquet", images]


def configured(folder: Path, sources: Sequence[str], output: OutputConfig) -> JobConfig:
    """The settings of all these jobs; sources on S3 lie on the server of the output."""
    settings = InputConfig(
        shards=tuple(sources), unit_screens=2, lot_units=3, s3_endpoint=output.s3_endpoint
    )
    limits = LimitsConfig(max_reject_share=1.0)
    return job(folder, folder, input=settings, output=output, limits=limits)


def work(faulty: Faulty, partition: Partition | None) -> None:
    """The body of a process: run the job or its part, or push; exits like the command does."""
    from pipeline.cli.errors import exit_code
    from pipeline.push import push_dataset
    from pipeline.run import run_job

    logging.basicConfig(level=logging.ERROR)
    logging.disable(logging.ERROR)
    config = faulty.config
    try:
        if faulty.push:
            output = config.output
            dataset = open_dataset(output.dataset, output.s3_endpoint, config.input.s3_endpoint)
            studio = LabelStudioConfig(url=faulty.studio, token_env="PANTALLA_TEST_TOKEN")
            sys.exit(1 if push_dataset(dataset, studio).pending else 0)
        engine = partial(PacedEngine, faulty.seconds)
        sys.exit(run_job(config, engine_factory=engine, partition=partition).exit_code)
    except PantallaError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(exit_code(error))


def context() -> multiprocessing.context.ForkServerContext:
    """Processes that are forked from one that has only imported: a start costs no imports."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(
        ["faulty_jobs", "pipeline.run", "pipeline.launch", "pipeline.push"]
    )
    return found


def start(faulty: Faulty) -> list[BaseProcess]:
    """The processes of a job, started."""
    count = faulty.partitions
    parts = [Partition(i + 1, count) for i in range(count)] if count > 1 else [None]
    processes = [
        context().Process(target=work, args=(faulty, part)) for part in parts * faulty.twins
    ]
    for process in processes:
        process.start()
    return processes


def ended(processes: Sequence[BaseProcess], seconds: float = DEADLINE_SECONDS) -> list[int | None]:
    """Wait for processes; their exit codes."""
    until = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            raise AssertionError(f"a process did not end within {seconds:.0f} s")
    return [process.exitcode for process in processes]


def finish(faulty: Faulty, again: Callable[[int], bool] = lambda _: False) -> None:
    """Run a job to its end, undisturbed; codes for which `again` holds are started once more."""
    for _ in range(200):
        codes = ended(start(faulty))
        if all(code == 0 for code in codes):
            break
        assert all(code == 0 or again(code or 0) for code in codes), codes
    else:
        raise AssertionError("a job did not end after 200 starts")
    if faulty.partitions > 1:  # the whole is proved by a run that finds all done
        finish(replace(faulty, partitions=1, twins=1), again)


def rows(dataset: Dataset) -> dict[str, list[str]]:
    """All rows of the tables of units, in an order of their own."""
    return {
        name: sorted(map(str, dataset.table(name).drop_columns(list(VOLATILE)).to_pylist()))
        for name in TABLES
    }


def opened(config: JobConfig) -> Dataset:
    """The dataset of a job."""
    output = config.output
    return open_dataset(output.dataset, output.s3_endpoint, config.input.s3_endpoint)


def check(config: JobConfig, undisturbed: JobConfig) -> None:
    """The dataset is whole, cleaned or not, and is that of the undisturbed job, row for row."""
    verdict = verify_dataset(opened(config), shards=True)
    assert verdict.whole, verdict.findings[:5]
    assert verdict.leftovers == 0
    clean(opened(config), lambda _: None)  # half-written files and marks of killed processes
    assert list(leftovers(opened(config))) == []
    found, expected = rows(opened(config)), rows(opened(undisturbed))
    for table in TABLES:
        assert found[table] == expected[table], f"{table} differs"
    counts = [[r.counts for r in opened(c).commits()] for c in (config, undisturbed)]
    assert counts[0] == counts[1]


def check_pushed(config: JobConfig, state: FakeState) -> int:
    """Each sample for people is one task with one prediction; how many there are."""
    from pipeline.review_samples import samples_to_review

    wanted = sorted(sample.sample_id for sample in samples_to_review(opened(config)))
    assert sorted(task["data"]["sample_id"] for task in state.tasks) == wanted
    predicted = sorted(prediction["task"] for prediction in state.predictions)
    assert predicted == sorted(task["id"] for task in state.tasks)
    return len(wanted)


def put_on_s3(server: S3Server, folder: Path) -> list[str]:
    """The shards of `folder` on the server; their URIs."""
    tar, parquet, images = make_shards(folder)
    objects = {f"entrada/{path.name}": path.read_bytes() for path in (tar, parquet)}
    objects |= {f"entrada/imagenes/{path.name}": path.read_bytes() for path in images.iterdir()}
    server.put(BUCKET, objects)
    names = ("a.tar", "b.parquet", "imagenes/")
    return [f"s3://{BUCKET}/entrada/{name}" for name in names]


def prepare() -> None:
    """What the processes find in their environment."""
    set_credentials()
    os.environ["PANTALLA_TEST_TOKEN"] = TOKEN
