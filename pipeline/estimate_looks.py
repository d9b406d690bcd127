"""A look at some screens of a plan, headers and sidecars only: what they will cost to ask about."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pipeline.config import InputConfig, JobConfig
from pipeline.input_settings import image_settings
from schemas.codes import QueryKind, RejectReason
from schemas.errors import MemberRejected, StorageError
from schemas.geometry import Size
from schemas.profile import ModelProfile
from schemas.records import Member, Shard, ShardKind, Unit
from transforms.decode import ImageSettings, announced_size
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
        refusal: why it will be a reject, which costs nothing; nothing else is known of it then.
    """

    size: Size | None
    grounding: int
    localization: int
    image_tokens: int | None
    is_left: bool
    refusal: RejectReason | None = None

    @classmethod
    def refused(cls, reason: RejectReason, *, is_left: bool) -> Look:
        """Of a screen that will be a reject."""
        return cls(None, 0, 0, None, is_left, reason)

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

    def refusals(self) -> Counter[RejectReason]:
        """How many of them will be rejects, by reason."""
        return Counter(look.refusal for look in self.seen if look.refusal is not None)

    def mean(self, value: Callable[[Look], float | None]) -> float | None:
        """The mean of a value over all screens; None = it is known of none.

        It is 0 of a reject. Where it is not known, a screen is taken to be like the others.
        """
        asked = [look for look in self.seen if look.refusal is None]
        known = [found for look in asked if (found := value(look)) is not None]
        if asked and not known:
            return None
        return sum(known) / len(known) * len(asked) / len(self.seen) if known else 0.0


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
    limits = image_settings(source)
    ask = _Asking(source, limits, load_profile(config.model.profile), listed)
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
    limits: ImageSettings
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
        """Tokens of an image of this size.

        Raises:
            MemberRejected: if the resize rule refuses it.
        """
        rule = self.profile.resize
        if size is None or rule is None:
            return None
        return image_tokens(seen_size(size, rule), rule)


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
        size = _size(ask, shard, member)
        if member.sidecar_row is None:
            sidecar = read_sidecar(shard, member, ask.source.s3)
        else:
            sidecar = rows.get((shard.uri, member.name))
        return ask.look(shard, member, size, sidecar, is_left=is_left)
    except MemberRejected as error:
        return Look.refused(error.reason, is_left=is_left)
    except StorageError as error:
        if isinstance(error.__cause__, MemberRejected):
            return Look.refused(error.__cause__.reason, is_left=is_left)
        return ask.look(
            shard, member, None, None, is_left=is_left
        )  # the job will say what is wrong


def _size(ask: _Asking, shard: Shard, member: Member) -> Size | None:
    head = _head(shard, member, ask.source.s3)
    size = announced_size(head, member.image.size, ask.limits)
    if size is None:  # a long header, or one at the end
        whole = read_member(shard, member, ask.source.s3)
        size = announced_size(whole, len(whole), ask.limits)
    return size


def _head(shard: Shard, member: Member, s3: S3Address) -> bytes:
    size = min(member.image.size, _HEAD_BYTES)
    if shard.kind is ShardKind.TAR:
        place = shard.uri, member.image.offset or 0
    elif shard.uri.endswith("/"):
        place = join_uri(shard.uri, member.image.name), 0
    else:
        return read_member(shard, member, s3)[:_HEAD_BYTES]
    return storage_for(shard.uri, s3).read_range(*place, size)


def _first_of_costly(units: Sequence[Unit]) -> Iterator[Unit]:
    firsts = (unit for unit in units if unit.index == 0 and _is_costly(unit.shard))
    for unit in itertools.islice(firsts, _COMPRESSED_SHARDS):
        yield Unit(unit.unit_id, unit.shard, 0, unit.members[:_FIRST_SCREENS])


def _looks_inside(ask: _Asking, unit: Unit, *, is_left: bool) -> Iterator[Look]:
    for item in read_unit(unit, ask.source.s3):
        if isinstance(item, RawScreen):
            yield _look_at_bytes(ask, unit.shard, item, is_left=is_left)
        else:
            yield Look.refused(item.reason, is_left=is_left)


def _look_at_bytes(ask: _Asking, shard: Shard, raw: RawScreen, *, is_left: bool) -> Look:
    try:
        size = announced_size(raw.data, len(raw.data), ask.limits)
        return ask.look(shard, raw.member, size, raw.sidecar, is_left=is_left)
    except MemberRejected as error:
        return Look.refused(error.reason, is_left=is_left)
