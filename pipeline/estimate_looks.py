"""A look at some screens of a plan, headers and sidecars only: what they will cost to ask about."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pipeline.config import InputConfig, JobConfig
from schemas.codes import QueryKind
from schemas.errors import MemberRejected, StorageError
from schemas.geometry import Size
from schemas.profile import ModelProfile
from schemas.records import Member, Shard, ShardKind, Unit
from transforms.decode import PILLOW_ERRORS
from transforms.image_files import image_format, open_image
from transforms.profiles.load import load_profile
from transforms.queries import QueriesFile, load_queries
from transforms.resize.show import image_tokens, seen_size
from transforms.shards import RawScreen, read_member, read_sidecar, read_unit
from transforms.shards.folder_sidecars import FolderSidecars
from transforms.sidecar import parse_sidecar
from transforms.storage import S3Address, join_uri, storage_for

MAX_LOOKS = 1000
"""Screens looked at: a second or two on a disk, a minute at worst on S3."""

_HEAD_BYTES = 64 * 2**10
_COMPRESSED_SHARDS, _FIRST_SCREENS = 8, 4
_THREADS = 16

_Rows: TypeAlias = "dict[tuple[str, str], bytes | None]"
"""Sidecars by shard and member."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of one screen before it is decoded.

    Attributes:
        size: pixels, before any EXIF turn; None = it cannot be told.
        image_tokens: tokens that show it to the model; None = the profile cannot say.
        is_left: whether it is still to be done.
    """

    size: Size | None
    grounding: int
    localization: int
    image_tokens: int | None
    is_left: bool

    @property
    def megapixels(self) -> float | None:
        """Pixels in millions."""
        return None if self.size is None else self.size.width * self.size.height / 1e6

    @property
    def queries(self) -> int:
        """Questions about the screen."""
        return self.grounding + self.localization


@dataclass(frozen=True, slots=True)
class Looks:
    """The screens looked at."""

    seen: tuple[Look, ...]

    @property
    def left(self) -> Looks:
        """Those of them that are still to be done; all where that is none."""
        return Looks(tuple(look for look in self.seen if look.is_left) or self.seen)

    def mean(self, value: Callable[[Look], float | None]) -> float | None:
        """The mean of a value over the screens of which it is known; None = of none."""
        known = [found for look in self.seen if (found := value(look)) is not None]
        return sum(known) / len(known) if known else None


def look_at(config: JobConfig, units: Sequence[Unit], done: frozenset[str]) -> Looks:
    """Look at screens spread evenly over the units, at most `MAX_LOOKS`.

    Of compressed tars and Parquet files, where a screen in the middle costs reading what is before
    it, only the first screens of the first files.

    Args:
        config: the job.
        units: of the whole plan.
        done: ids of those that are committed.

    Raises:
        ConfigError: if the profile or the queries file is wrong.
        StorageError: if a store does not answer.
    """
    source = config.input
    listed = load_queries(source.queries, source.s3) if source.queries else None
    ask = _Asking(source, load_profile(config.model.profile), listed)
    picked = list(_spread([unit for unit in units if not _is_costly(unit.shard)]))
    rows = _from_tables(picked, source.s3)
    with ThreadPoolExecutor(_THREADS) as pool:
        seen = list(pool.map(partial(_look, ask, done, rows), picked))
    for unit in _first_of_costly(units):
        seen += _looks_inside(ask, unit, is_left=unit.unit_id not in done)
    return Looks(tuple(seen))


@dataclass(frozen=True, slots=True)
class _Asking:
    """What decides how many questions there are, and how large the model sees a screen."""

    source: InputConfig
    profile: ModelProfile
    listed: QueriesFile | None

    def look(
        self,
        shard: Shard,
        member: Member,
        size: Size | None,
        sidecar: bytes | None,
        *,
        is_left: bool,
    ) -> Look:
        own = 0 if self.listed is None else len(self.listed.for_member(shard.uri, member.name))
        own += 0 if sidecar is None else len(parse_sidecar(sidecar).queries)
        wanted = self.source.enumerate_elements
        can = QueryKind.LOCALIZATION in self.profile.tasks
        enumerates = can and (wanted == "always" or (wanted == "auto" and own == 0))
        return Look(size, own, int(enumerates), self._tokens(size), is_left)

    def _tokens(self, size: Size | None) -> int | None:
        rule = self.profile.resize
        if size is None or rule is None:
            return None
        try:
            return image_tokens(seen_size(size, rule), rule)
        except MemberRejected:
            return 0  # it will be rejected, and never shown


def _is_costly(shard: Shard) -> bool:
    return shard.kind is ShardKind.PARQUET or shard.uri.endswith(("gz", "zst", "zstd"))


def _spread(units: Sequence[Unit]) -> Iterator[tuple[Unit, Member]]:
    total = sum(len(unit.members) for unit in units)
    step = max(total / MAX_LOOKS, 1.0)
    wanted, position = 0.0, 0
    for unit in units:
        while round(wanted) < position + len(unit.members):
            yield unit, unit.members[round(wanted) - position]
            wanted += step
        position += len(unit.members)


def _from_tables(picked: Sequence[tuple[Unit, Member]], s3: S3Address) -> _Rows:
    """Sidecars that are rows of a Parquet table, which is gone through once for all of them."""
    by_shard: dict[Shard, list[Member]] = {}
    for unit, member in picked:
        if member.sidecar_row is not None:
            by_shard.setdefault(unit.shard, []).append(member)
    rows: _Rows = {}
    for shard, members in by_shard.items():
        table = FolderSidecars(shard, members, storage_for(shard.uri, s3))
        with suppress(MemberRejected):  # the job will say what is wrong with it
            rows |= {(shard.uri, member.name): table.fetch(member) for member in members}
    return rows


def _look(ask: _Asking, done: frozenset[str], rows: _Rows, picked: tuple[Unit, Member]) -> Look:
    unit, member = picked
    shard, is_left = unit.shard, unit.unit_id not in done
    try:
        if member.sidecar_row is None:
            sidecar = read_sidecar(shard, member, ask.source.s3)
        else:
            sidecar = rows.get((shard.uri, member.name))
        head = _head(shard, member, ask.source.s3)
        size = _size(head)
        if size is None and len(head) == _HEAD_BYTES:  # a long header, or one at the end
            size = _size(read_member(shard, member, ask.source.s3))
    except StorageError:
        sidecar = size = None  # the job will say what is wrong with it
    return ask.look(shard, member, size, sidecar, is_left=is_left)


def _head(shard: Shard, member: Member, s3: S3Address) -> bytes:
    size = min(member.image.size, _HEAD_BYTES)
    if shard.kind is ShardKind.TAR:
        place = shard.uri, member.image.offset or 0
    elif shard.uri.endswith("/"):
        place = join_uri(shard.uri, member.image.name), 0
    else:
        return read_member(shard, member, s3)[:_HEAD_BYTES]
    return storage_for(shard.uri, s3).read_range(*place, size)


def _size(head: bytes) -> Size | None:
    try:
        with open_image(image_format(head), io.BytesIO(head)) as image:
            return Size(*image.size)
    except (MemberRejected, *PILLOW_ERRORS):
        return None


def _first_of_costly(units: Sequence[Unit]) -> Iterator[Unit]:
    firsts = (unit for unit in units if unit.index == 0 and _is_costly(unit.shard))
    for unit in itertools.islice(firsts, _COMPRESSED_SHARDS):
        yield Unit(unit.unit_id, unit.shard, 0, unit.members[:_FIRST_SCREENS])


def _looks_inside(ask: _Asking, unit: Unit, *, is_left: bool) -> Iterator[Look]:
    for item in read_unit(unit, ask.source.s3):
        if isinstance(item, RawScreen):
            size = _size(item.data)
            yield ask.look(unit.shard, item.member, size, item.sidecar, is_left=is_left)
