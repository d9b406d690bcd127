"""The head and the commit records: each is valid, and they agree with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.clean import UNIT_TABLES
from pipeline.dataset_parts import check_version
from pipeline.verify.findings import Verdict
from schemas.commits import CommitRecord, DatasetHead, commit_from_json, read_head
from schemas.errors import DatasetError, StorageError
from schemas.ids import content_id
from transforms.commit import COMMITS, HEAD, part_unit
from transforms.storage import Storage, join_uri

if TYPE_CHECKING:
    from transforms.storage import ObjectStat


def checked_head(storage: Storage, root: str, verdict: Verdict) -> DatasetHead | None:
    """The head file, where it is one, with its fingerprint computed again."""
    uri = join_uri(root, HEAD)
    try:
        head = read_head(storage.read(uri), uri)
        check_version(uri, head.schema_version)
    except (DatasetError, StorageError) as error:
        verdict.add("head", uri, str(error))
        return None
    ingredients = {**head.ingredients, "schema_version": head.schema_version}
    if content_id(ingredients, length=64) != head.fingerprint:
        verdict.add("head", uri, "the fingerprint is not that of the ingredients beside it")
    return head


def checked_records(
    storage: Storage, root: str, head: DatasetHead | None, verdict: Verdict
) -> list[CommitRecord]:
    """The records that can be read, each checked for itself and against the others."""
    records = []
    for stat in storage.list(join_uri(root, COMMITS)):
        record = _read(storage, stat, verdict)
        if record is not None:
            _check(record, stat.uri, head, verdict)
            records.append(record)
    _together(root, records, verdict)
    return sorted(records, key=lambda r: (r.shard, r.unit_index, r.unit_id))


def _read(storage: Storage, stat: ObjectStat, verdict: Verdict) -> CommitRecord | None:
    if not stat.uri.endswith(".json"):
        verdict.add("record", stat.uri, "no commit record has such a name")
        return None
    try:
        record = commit_from_json(storage.read(stat.uri), stat.uri)
    except (DatasetError, StorageError) as error:
        verdict.add("record", stat.uri, str(error))
        return None
    return record


def _check(record: CommitRecord, uri: str, head: DatasetHead | None, verdict: Verdict) -> None:
    if uri.rpartition("/")[2] != f"{record.unit_id}.json":
        verdict.add("record", uri, f"is the record of unit {record.unit_id}")
    if head is not None and record.fingerprint != head.fingerprint:
        verdict.add("record", uri, "was made under other settings than the head says")
    if head is not None and record.schema_version != head.schema_version:
        verdict.add("record", uri, f"schema {record.schema_version}, the head's is another one")
    if not record.counts.balanced:
        verdict.add("counts", uri, f"do not add up: {record.counts}")
    tables = sorted(part.table for part in record.parts)
    if tables != sorted(UNIT_TABLES):
        verdict.add("record", uri, f"names parts of {', '.join(tables) or 'no table'}")
    for part in record.parts:
        if part.path.split("/")[0] != part.table or part_unit(part.path) != record.unit_id:
            verdict.add("record", uri, f"{part.path} is no part of its {part.table}")


def _together(root: str, records: Sequence[CommitRecord], verdict: Verdict) -> None:
    """No unit, no place in a shard and no part may be there twice."""
    seen = {
        "unit": Counter(record.unit_id for record in records),
        "place": Counter(f"{record.shard}, unit {record.unit_index}" for record in records),
        "part": Counter(part.path for record in records for part in record.parts),
    }
    for what, counter in seen.items():
        for name, count in counter.items():
            if count > 1:
                verdict.add("doubled", root, f"{count} commit records name the same {what}: {name}")
