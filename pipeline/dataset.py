"""Reads a dataset: follows its commit records, so that only what was committed is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from pipeline.dataset_parts import check_version, read_part, table_schema
from pipeline.pull_known import all_reviews, latest_reviews
from pipeline.rows import SampleRow, ScreenRow, sample_rows, screen_rows
from pipeline.totals import total_counts
from pipeline.versions import newest_root
from schemas.commits import CommitRecord, DatasetHead, UnitCounts, commit_from_json, read_head
from schemas.errors import DatasetError
from schemas.ids import sha256_hex
from schemas.records import Shard, ShardKind
from schemas.tables import SCHEMA_VERSION
from transforms.commit import COMMITS, HEAD
from transforms.decode import ImageSettings, decode_image
from transforms.shards import IndexStore, member_of_row, read_member
from transforms.storage import S3Address, Storage, join_uri, normalize_uri, storage_for


@dataclass(frozen=True, slots=True)
class Description:
    """What a dataset holds, from its commit records.

    Attributes:
        fingerprint: hash of everything that shapes rows.
        ingredients: what the fingerprint was made of, as canonical JSON text.
        counts: the counts of all units, added up.
    """

    uri: str
    fingerprint: str
    ingredients: str
    schema_version: str
    units: int
    shards: tuple[str, ...]
    counts: UnitCounts


@dataclass(slots=True)
class Dataset:
    """One dataset, as it was when its commit records were first read.

    Attributes:
        uri: local folder or `s3://bucket/prefix`, without a trailing slash.
        storage: where it lies.
        input_endpoint: how to reach the shards that its screens point to, where they are on S3.
    """

    uri: str
    storage: Storage
    input_endpoint: S3Address = None
    _commits: list[CommitRecord] | None = field(default=None, repr=False)

    def commits(self) -> list[CommitRecord]:
        """The commit records, by shard and position in the shard.

        Raises:
            DatasetError: if a record is not valid, or was made under other settings than the head.
        """
        if self._commits is None:
            listed = self.storage.list(join_uri(self.uri, COMMITS))
            uris = sorted(stat.uri for stat in listed if stat.uri.endswith(".json"))
            records = [self._record(uri) for uri in uris]
            _check_one_fingerprint(self.uri, records, self._head().fingerprint)
            self._commits = sorted(records, key=lambda r: (r.shard, r.unit_index, r.unit_id))
        return list(self._commits)

    def only(self, unit_ids: AbstractSet[str]) -> Dataset:
        """The same dataset, of which only these units are seen.

        Raises:
            DatasetError: as `commits`.
        """
        kept = [record for record in self.commits() if record.unit_id in unit_ids]
        return replace(self, _commits=kept)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """All committed rows of one table, in commit order; no rows when nothing is committed.

        Args:
            name: `annotations`, `screens`, `rejects` or `reviews`.
            columns: only these, in this order; default: all.

        Raises:
            DatasetError: if a part is missing or was written under another schema.
        """
        if name == "reviews":
            return self.reviews().select(table_schema(name, columns).names)
        empty = table_schema(name, columns).empty_table()
        return pa.concat_tables([empty, *(part for _, part in self.parts(name, columns))])

    def parts(
        self, name: str, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[CommitRecord, pa.Table]]:
        """The committed parts of one table, one at a time, with their commit records.

        Raises:
            DatasetError: if a part is missing or was written under another schema.
        """
        schema = table_schema(name, columns)
        for record in self.commits():
            for part in record.parts:
                if part.table == name:
                    uri = join_uri(self.uri, *part.path.split("/"))
                    yield record, read_part(self.storage, uri, part.rows, schema)

    def reviews(self, *, latest: bool = False) -> pa.Table:
        """What people said: every version of every review that `pantalla pull` found.

        Args:
            latest: only the last version of each review, and none of what was deleted since;
                skipped ones are among them.

        Raises:
            DatasetError: if a part is missing or was written under another schema.
        """
        table = all_reviews(self.storage, self.uri)
        return latest_reviews(table) if latest else table

    def describe(self) -> Description:
        """What the dataset holds."""
        records = self.commits()
        head = self._head()
        return Description(
            uri=self.uri,
            fingerprint=head.fingerprint,
            ingredients=json.dumps(head.ingredients, ensure_ascii=False, sort_keys=True),
            schema_version=SCHEMA_VERSION,
            units=len(records),
            shards=tuple(sorted({record.shard for record in records})),
            counts=total_counts(records),
        )

    def screens(self) -> Iterator[ScreenRow]:
        """Every screen, in commit order."""
        for _, part in self.parts("screens"):
            yield from screen_rows(part)

    def samples(self) -> Iterator[SampleRow]:
        """Every sample, in commit order."""
        for _, part in self.parts("annotations"):
            yield from sample_rows(part)

    def screen(self, screen_id: str) -> ScreenRow:
        """The screen of that id, or of a unique beginning of it.

        Raises:
            DatasetError: if there is none, or the beginning fits several.
        """
        found = self._unique("screens", "screen_id", screen_id, "screen")
        return next(screen_rows(found))

    def sample(self, sample_id: str) -> SampleRow:
        """The sample of that id, or of a unique beginning of it.

        Raises:
            DatasetError: if there is none, or the beginning fits several.
        """
        found = self._unique("annotations", "sample_id", sample_id, "sample")
        return next(sample_rows(found))

    def image_bytes(self, screen_id: str) -> bytes:
        """The original bytes of a screenshot, read from its shard and checked against its hash.

        Raises:
            DatasetError: if the screen is unknown, or the shard no longer holds these bytes.
            StorageError: if the shard cannot be read.
        """
        return self.pixels_of(self.screen(screen_id))

    def pixels_of(self, screen: ScreenRow) -> bytes:
        """The original bytes of `screen`, like `image_bytes`.

        Raises:
            DatasetError: if the shard no longer holds these bytes.
            StorageError: if the shard cannot be read.
        """
        shard = Shard(screen.shard, ShardKind(screen.shard_kind))
        member = member_of_row(screen.member, screen.byte_offset, screen.byte_size, screen.row)
        kept = IndexStore(self.uri, self.storage)
        data = read_member(shard, member, self.input_endpoint, kept)
        if sha256_hex(data) != screen.screen_id:
            raise DatasetError(
                f"{screen.shard}: {screen.member} has changed since it was annotated "
                f"(expected SHA-256 {screen.screen_id[:12]}..., found {sha256_hex(data)[:12]}...)"
            )
        return data

    def picture(self, screen: ScreenRow) -> Image.Image:
        """The pixels of `screen`: upright RGB, the frame of all stored geometry.

        Raises:
            DatasetError: if the shard no longer holds its bytes.
            StorageError: if the shard cannot be read.
        """
        return decode_image(self.pixels_of(screen), self._as_annotated()).image

    def _as_annotated(self) -> ImageSettings:
        """No limits, since every screen of the dataset was within them; the page colour it had."""
        taken = self._head().ingredients.get("input")
        colour = taken.get("background") if isinstance(taken, dict) else None
        return ImageSettings.unlimited(str(colour or "#ffffff"))

    def _unique(self, table: str, column: str, prefix: str, what: str) -> pa.Table:
        found: dict[str, pa.Table] = {}
        for _, part in self.parts(table):
            ids = [value for value in part[column].to_pylist() if value.startswith(prefix)]
            for value in ids:
                found.setdefault(value, part)
        if prefix in found:
            found = {prefix: found[prefix]}
        if len(found) != 1:
            raise DatasetError(_not_unique(self.uri, what, prefix, sorted(found)))
        ((value, part),) = found.items()
        return part.filter(pc.equal(part[column], value))

    def _record(self, uri: str) -> CommitRecord:
        record = commit_from_json(self.storage.read(uri), uri)
        check_version(uri, record.schema_version)
        return record

    def _head(self) -> DatasetHead:
        uri = join_uri(self.uri, HEAD)
        return read_head(self.storage.read(uri), uri)


def open_dataset(
    uri: str, s3_endpoint: str | None = None, input_endpoint: S3Address = None
) -> Dataset:
    """Open a dataset for reading: its newest version, unless one is named.

    Args:
        uri: a local folder or `s3://bucket/prefix`; `name@v1`, `name@v2`, ... name a version.
        s3_endpoint: of the dataset, where it is not AWS.
        input_endpoint: of the shards its screens point to; default: `s3_endpoint`.

    Raises:
        DatasetError: if there is no dataset there.
    """
    return open_root(newest_root(uri, s3_endpoint), s3_endpoint, input_endpoint)


def open_root(
    uri: str, s3_endpoint: str | None = None, input_endpoint: S3Address = None
) -> Dataset:
    """As `open_dataset`, but exactly what lies at `uri`, whatever newer versions there are."""
    root = normalize_uri(uri).rstrip("/")
    storage = storage_for(root, s3_endpoint)
    if not storage.exists(join_uri(root, HEAD)):
        raise DatasetError(
            f"{root}: not a Pantalla dataset (it has no {HEAD}); "
            "`pantalla run` makes one at output.dataset of the job file"
        )
    return Dataset(root, storage, input_endpoint or s3_endpoint)


def _check_one_fingerprint(uri: str, records: Sequence[CommitRecord], head: str) -> None:
    found = sorted({head, *(record.fingerprint for record in records)})
    if len(found) > 1:
        raise DatasetError(
            f"{uri}: holds units made under {len(found)} different settings "
            f"({', '.join(text[:8] for text in found)}); a dataset holds only one"
        )


def _not_unique(uri: str, what: str, prefix: str, found: Sequence[str]) -> str:
    if not found:
        return f"{uri}: no {what} whose id begins with `{prefix}`"
    some = ", ".join(text[:12] for text in found[:5])
    return f"{uri}: `{prefix}` fits {len(found)} {what}s ({some}, ...); give more of the id"
