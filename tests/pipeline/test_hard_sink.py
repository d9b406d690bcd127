"""Group 6 of the hard inputs: Beam, the Parquet sink, S3 and retries (B117 to B133).

Keys and reading (B128), and each error of S3 alone, are tested with the storage itself.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from job_fixtures import Shot, job, oracle, png, scripted, shots, sidecar, write_shard, write_tar
from s3_proxy import Faults, Request, s3_proxy
from s3_server import ACCESS_KEY, SECRET_KEY, S3Server

from pipeline.cli.app import main
from pipeline.cli.errors import exit_code
from pipeline.config import InputConfig, JobConfig, OutputConfig
from pipeline.dataset import open_dataset, open_root
from pipeline.run import run_job
from pipeline.verify import verify_dataset
from schemas.errors import ConfigError, InputError, StorageError
from schemas.records import Answer, Completion
from schemas.tables import TABLES
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine
from transforms.rows import to_table
from transforms.storage import storage_for
from transforms.storage.local import LocalStorage

BUCKET = "sumidero"
UNIT_TABLES = ("annotations", "screens", "rejects")


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[tuple[str, Faults]]:
    s3.put(BUCKET, {"x": b"1"})
    with s3_proxy(s3.port) as running:
        yield running


def on_s3(tmp_path: Path, endpoint: str, name: str, count: int = 2) -> JobConfig:
    output = OutputConfig(dataset=f"s3://{BUCKET}/{name}", s3_endpoint=endpoint)
    return job(tmp_path, write_shard(tmp_path / "a.tar", shots(count)), output=output)


def test_b117_b119_parts_without_rows_or_without_boxes_have_the_one_schema(tmp_path: Path) -> None:
    """Units with no box, with three rows, and with nothing but rejects."""
    absent = Shot("nada", targets={"Abrí lo que no está": None})
    boxes = shots(1, "cajas")
    files = {"a.png": png(absent), "a.json": sidecar(absent), "a2.png": b"", "a3.png": b"x"}
    files |= {"b.png": png(boxes[0]), "b.json": sidecar(boxes[0])}
    known = [absent, *boxes]
    config = job(
        tmp_path,
        write_tar(tmp_path / "a.tar", files),
        input=InputConfig(shards=(str(tmp_path / "a.tar"),), unit_screens=1),
    )
    run_job(config, engine_factory=scripted(oracle(known)))
    dataset = open_dataset(config.output.dataset)
    for name in UNIT_TABLES:
        for path in (tmp_path / "dataset" / name).iterdir():
            assert pq.read_schema(path).equals(TABLES[name])
        assert dataset.table(name).schema.equals(TABLES[name])
    assert 0 in [part.rows for record in dataset.commits() for part in record.parts]
    assert verify_dataset(dataset).whole


def test_b118_a_missing_field_is_null_and_an_extra_one_is_an_error() -> None:
    row = {"unit_id": "u", "shard": "s", "stage": "read", "reason": "image_empty", "detail": "d"}
    assert to_table("rejects", [row]).to_pylist()[0]["member"] is None
    with pytest.raises(ValueError, match="zzz"):
        to_table("rejects", [{**row, "zzz": 1}])


def test_b121_a_failed_run_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    from schemas.errors import EngineError

    known = shots(6)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    with pytest.raises(EngineError):
        run_job(config, engine_factory=scripted(oracle(known), fail_after=7))
    left = [path.name for path in (tmp_path / "dataset").rglob("*") if "temp" in path.name.lower()]
    assert left == []
    run_job(config, engine_factory=scripted(oracle(known)))
    assert len(open_dataset(config.output.dataset).table("annotations")) == 18


def test_b122_an_empty_object_is_written(s3: S3Server) -> None:
    s3.put(BUCKET, {"x": b"1"})
    storage = storage_for(f"s3://{BUCKET}/x", s3.endpoint)
    storage.write_atomic(f"s3://{BUCKET}/vacio-1", b"")
    assert storage.create(f"s3://{BUCKET}/vacio-2", b"")
    assert storage.read(f"s3://{BUCKET}/vacio-1") == storage.read(f"s3://{BUCKET}/vacio-2") == b""


def test_b123_a_large_part_is_one_put_and_no_multipart_upload(proxy: tuple[str, Faults]) -> None:
    endpoint, faults = proxy
    storage_for(f"s3://{BUCKET}/x", endpoint).write_atomic(f"s3://{BUCKET}/grande", bytes(30 << 20))
    assert (faults.requests["PUT"], faults.requests["POST"]) == (1, 0)


@pytest.mark.parametrize("kind", ["slow_down", "conflict", "reset_after", "error_after"])
def test_b124_b132_each_request_of_a_job_may_fail_twice(
    proxy: tuple[str, Faults], tmp_path: Path, kind: str
) -> None:
    endpoint, faults = proxy
    seen: Counter[Request] = Counter()

    def twice(request: Request) -> str | None:
        seen[request] += 1
        return kind if seen[request] <= 2 else None

    faults.choose = twice
    config = on_s3(tmp_path, endpoint, f"dos-veces-{kind}")
    assert run_job(config, engine_factory=scripted(oracle(shots(2)))).exit_code == 0
    faults.choose = lambda _: None
    assert {operation for _, operation in faults.done} >= {"GET", "HEAD", "PUT", "LIST"}
    dataset = open_root(config.output.dataset, endpoint)
    assert len(dataset.table("annotations")) == 6
    assert verify_dataset(dataset).whole


def test_b124_a_store_that_stays_busy_ends_the_job_and_the_same_command_goes_on(
    proxy: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.storage.s3_connection.ATTEMPTS", 3)
    monkeypatch.setattr("transforms.storage.s3_connection._LONGEST_WAIT", 0.05)
    endpoint, faults = proxy
    config = on_s3(tmp_path, endpoint, "siempre-ocupado", 4)
    commits = f"/{BUCKET}/siempre-ocupado/_commits/"

    def busy(request: Request) -> str | None:
        """From the first record on, nothing more is written."""
        begun = any(key.startswith(commits) for key in records)
        if request.operation == "PUT" and request.key.startswith(commits):
            records.add(request.key)
        return "slow_down" if begun and request.operation == "PUT" else None

    records: set[str] = set()
    faults.choose = busy
    with pytest.raises(StorageError, match=r"cannot (write|create): S3 error SlowDown") as caught:
        run_job(config, engine_factory=scripted(oracle(shots(4))))
    assert exit_code(caught.value) == 4
    faults.choose = lambda _: None
    assert len(open_root(config.output.dataset, endpoint).commits()) == 1
    outcome = run_job(config, engine_factory=scripted(oracle(shots(4))))
    assert outcome.report.figures.stats.units_reused == 1
    assert verify_dataset(open_root(config.output.dataset, endpoint)).whole


def test_b125_a_closed_port_is_named_and_a_misspelt_option_refused(tmp_path: Path) -> None:
    config = on_s3(tmp_path, "http://127.0.0.1:9", "nadie")
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:9"):
        run_job(config, engine_factory=scripted(oracle([])))
    with pytest.raises(ConfigError, match="s3_access_key"):
        run_job(config, ["--s3_access_key=x"], engine_factory=scripted(oracle([])))


def test_b127_a_pattern_that_matches_nothing_on_s3_is_exit_2(
    s3: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    s3.put(BUCKET, {"entrada/a.tar": b"x"})
    path = tmp_path / "job.toml"
    path.write_text(
        f'[input]\nshards = ["s3://{BUCKET}/entrda/*.tar"]\ns3_endpoint = "{s3.endpoint}"\n'
        f'[output]\ndataset = "{tmp_path}/dataset"\n'
    )
    with pytest.raises(SystemExit) as ended:
        main(["run", str(path)])
    assert ended.value.code == 2
    assert f"s3://{BUCKET}/entrda/*.tar" in capsys.readouterr().err
    with pytest.raises(InputError):
        run_job(job(tmp_path, tmp_path / "entrda" / "*.tar"))


def test_b129_credentials_that_end_are_read_again(
    proxy: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end after some requests; the environment holds new ones from the first refusal on."""
    endpoint, faults = proxy
    config = on_s3(tmp_path, endpoint, "caducadas", 4)
    state = {"requests": 0, "refused": 0}

    def ends(_: Request) -> str | None:
        state["requests"] += 1
        if state["requests"] < 12 or state["refused"] >= 4:
            return None
        state["refused"] += 1
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        return "expired"

    faults.choose = ends
    assert run_job(config, engine_factory=scripted(oracle(shots(4)))).exit_code == 0
    assert state["refused"] == 4


def test_b130_one_bad_picture_and_one_bad_answer_of_twenty_cost_themselves(tmp_path: Path) -> None:
    known = shots(20)
    files: dict[str, bytes] = {}
    for shot in known:
        data = png(shot)
        files[f"{shot.name}.png"] = data[:120] if shot.name.endswith("-007") else data
        files[f"{shot.name}.json"] = sidecar(shot)
    bad = next(iter(known[11].targets))
    config = job(tmp_path, write_tar(tmp_path / "a.tar", files))
    run_job(config, engine_factory=scripted(oracle(known, frozenset({bad}))))
    dataset = open_dataset(config.output.dataset)
    (reject,) = dataset.table("rejects").to_pylist()
    assert (reject["stage"], reject["reason"]) == ("decode", "image_truncated")
    statuses = Counter(dataset.table("annotations", ["status"])["status"].to_pylist())
    assert (statuses["unparseable"], statuses.total()) == (1, 57)


def test_b131_a_bundle_that_is_done_again_adds_nothing(tmp_path: Path) -> None:
    """Beam runs every bundle three times, as any runner may after a failure."""
    known = shots(6)
    shard = write_shard(tmp_path / "a.tar", known)
    once, thrice = job(tmp_path / "once", shard), job(tmp_path / "thrice", shard)
    run_job(once, engine_factory=scripted(oracle(known)))
    run_job(thrice, ["--direct_runner_bundle_repeat=2"], engine_factory=scripted(oracle(known)))
    one, other = (open_dataset(config.output.dataset) for config in (once, thrice))
    for name in UNIT_TABLES:
        assert one.table(name).equals(other.table(name)), name
    for config in (once, thrice):
        parts = list((Path(config.output.dataset) / "annotations").iterdir())
        assert len(parts) == 3


def other_each_time(calls: Counter[str]):  # noqa: ANN201 - a script for the engine
    def answer(request: EngineRequest) -> Answer:
        calls["n"] += 1
        box = json.dumps([{"bbox_2d": [10, 10, 200 + calls["n"] % 50, 200], "label": "button"}])
        return Answer(request.request_id, (Completion(box, "stop", 9),) * request.n)

    return answer


def test_b131_a_unit_that_is_answered_otherwise_the_second_time_is_still_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is not the same twice: the first attempt died between its parts and its record."""
    from transforms import commit as commit_module

    calls: Counter[str] = Counter()
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(2)))

    def engine() -> ScriptedEngine:
        return ScriptedEngine(other_each_time(calls))

    def dies(*_: object) -> None:
        raise StorageError("died")

    monkeypatch.setattr(commit_module.DatasetWriter, "_stand", dies)
    with pytest.raises(StorageError, match="died"):
        run_job(config, engine_factory=engine)
    monkeypatch.undo()
    run_job(config, engine_factory=engine)
    dataset = open_dataset(config.output.dataset)
    ids = dataset.table("annotations", ["sample_id"])["sample_id"].to_pylist()
    assert len(ids) == len(set(ids)) == 6
    assert len(list((tmp_path / "dataset" / "annotations").iterdir())) == 1
    assert verify_dataset(dataset).whole


def spoilt(data: bytes) -> bytes:
    """As long as before, but not the same."""
    return data[:-20] + bytes(20)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(lambda data: data[:-8], "bytes are stored"), (spoilt, "not those that were written")],
)
def test_b133_a_part_that_is_not_stored_as_written_is_not_committed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[bytes], bytes],
    said: str,
) -> None:
    known = shots(2)
    config = job(tmp_path, write_shard(tmp_path / "a.tar", known))
    whole = LocalStorage.write_atomic
    spoils = {"left": 100}

    def write(self: LocalStorage, uri: str, data: bytes) -> None:
        if "/screens/" in uri and spoils["left"] > 0:
            spoils["left"] -= 1
            data = spoil(data)
        whole(self, uri, data)

    monkeypatch.setattr(LocalStorage, "write_atomic", write)
    with pytest.raises(StorageError, match=said):
        run_job(config, engine_factory=scripted(oracle(known)))
    assert open_dataset(config.output.dataset).commits() == []
    spoils["left"] = 1  # and a store that does it once is believed the second time
    assert run_job(config, engine_factory=scripted(oracle(known))).exit_code == 0
    assert verify_dataset(open_dataset(config.output.dataset)).whole
