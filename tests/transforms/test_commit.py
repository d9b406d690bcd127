import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.commits import (
    CommitRecord,
    DatasetHead,
    UnitCounts,
    WorkerStats,
    commit_from_json,
    commit_to_json,
    head_to_json,
)
from schemas.errors import DatasetError, StorageError
from schemas.ids import sha256_hex
from schemas.records import Shard, ShardKind, Unit
from schemas.tables import SCHEMA_VERSION, TABLES
from transforms import commit as commit_module
from transforms.commit import DatasetWriter
from transforms.rows import to_table

UNIT = Unit("u1", Shard("/s/a.tar", ShardKind.TAR), 0, ())
REJECT = {
    "unit_id": "u1",
    "shard": "/s/a.tar",
    "stage": "decode",
    "reason": "image_corrupt",
    "detail": "no es una imagen",
    "member": "ñandú.png",
}
COUNTS = UnitCounts(members=1, members_rejected=1, rejects={"image_corrupt": 1})


def claim(folder: Path, fingerprint: str) -> None:
    head = DatasetHead(fingerprint=fingerprint, schema_version=SCHEMA_VERSION, ingredients={})
    (folder / "_dataset.json").write_bytes(head_to_json(head))


def write(folder: Path, **worker: float) -> CommitRecord:
    writer = DatasetWriter(str(folder), "f" * 64)
    claim(folder, "f" * 64)
    tables = {
        "annotations": to_table("annotations", []),
        "screens": to_table("screens", []),
        "rejects": to_table("rejects", [dict(REJECT)]),
    }
    return writer.commit(UNIT, tables, COUNTS, WorkerStats(**worker))


def test_a_unit_is_three_parts_and_a_record_that_names_them(tmp_path: Path) -> None:
    record = write(tmp_path)
    assert [(p.table, p.rows) for p in record.parts] == [
        ("annotations", 0),
        ("screens", 0),
        ("rejects", 1),
    ]
    for part in record.parts:
        data = (tmp_path / part.path).read_bytes()
        assert (part.byte_size, part.sha256) == (len(data), sha256_hex(data))
        assert part.path == f"{part.table}/u1-ffffffff-{part.sha256[:12]}.parquet"
    assert DatasetWriter(str(tmp_path), "f" * 64).find("u1") == record


def test_a_dataset_that_another_job_took_over_is_not_written_to(tmp_path: Path) -> None:
    writer = DatasetWriter(str(tmp_path), "f" * 64)
    claim(tmp_path, "0" * 64)
    with pytest.raises(DatasetError, match="taken this dataset over"):
        writer.commit(UNIT, {}, COUNTS, WorkerStats())


def test_parts_without_rows_still_carry_the_schema(tmp_path: Path) -> None:
    write(tmp_path)
    (part,) = (tmp_path / "annotations").glob("u1-ffffffff-*.parquet")
    schema = pq.read_schema(part)
    assert schema.equals(TABLES["annotations"])
    assert schema.metadata[b"pantalla.schema_version"] == SCHEMA_VERSION.encode()
    assert b"SHA-256" in schema.field("screen_id").metadata[b"description"]


def test_the_first_record_stands(tmp_path: Path) -> None:
    first = write(tmp_path, seconds=1.0)
    second = write(tmp_path, seconds=2.0)
    assert second == first
    assert len(list((tmp_path / "_commits").iterdir())) == 1


def test_without_the_record_the_unit_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(record: CommitRecord) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(commit_module, "commit_to_json", killed)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path)
    monkeypatch.undo()
    assert DatasetWriter(str(tmp_path), "f" * 64).find("u1") is None
    write(tmp_path)
    assert len(list((tmp_path / "rejects").iterdir())) == 1


def test_a_part_that_is_not_stored_whole_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transforms.storage.local import LocalStorage

    whole = LocalStorage.write_atomic
    monkeypatch.setattr(
        LocalStorage, "write_atomic", lambda self, uri, data: whole(self, uri, data[:-1])
    )
    with pytest.raises(StorageError, match="bytes are stored"):
        write(tmp_path)
    assert not (tmp_path / "_commits").exists()


def test_records_survive_json_and_reject_anything_else(tmp_path: Path) -> None:
    record = write(tmp_path)
    data = commit_to_json(record)
    assert commit_from_json(data, "x") == record
    assert "reused" not in json.loads(data)
    for broken in (b"", b"[]", b'{"unit_id": 3}', data.replace(b'"rows": 1', b'"rows": "uno"')):
        with pytest.raises(DatasetError, match=r"mem://x: not a commit record"):
            commit_from_json(broken, "mem://x")


@pytest.mark.parametrize(
    ("change", "message"),
    [({"zzz": 1}, "unknown fields"), ({"detail": None}, "required fields are null")],
)
def test_rows_that_do_not_fit_the_schema_are_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        to_table("rejects", [{**REJECT, **change}])
