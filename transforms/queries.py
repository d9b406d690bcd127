"""The queries file: questions about screens, kept apart from the shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from unicodedata import normalize

from schemas.codes import QueryKind, QueryOrigin, RejectReason
from schemas.errors import ConfigError
from schemas.ids import sha256_hex
from schemas.records import Problem, Query, Truth, TruthBox, Unit
from transforms.queries_lines import Line, read_lines
from transforms.storage import (
    ObjectDeniedError,
    ObjectMissingError,
    S3Address,
    normalize_uri,
    storage_for,
)


@dataclass(frozen=True)
class QueriesFile:
    """A queries file, read and checked.

    Attributes:
        uri: where it was read from.
        lines: its entries, in order.
        sha256: hash of its bytes, for the fingerprint of a run.
    """

    uri: str
    lines: tuple[Line, ...]
    sha256: str

    def for_member(self, shard_uri: str, member_name: str) -> tuple[Query, ...]:
        """The queries about one screen, in the order of the file, numbered from 0.

        A line names a screen by its full name in the shard or by its base name, with or without
        suffix; a line without a shard asks every screen of that name. Names are compared in NFC.
        """
        shards = _shard_keys(shard_uri)
        hits = {
            line.number: line
            for key in _member_keys(member_name)
            for line in self._by_member.get(key, ())
            if line.shard is None or _nfc(line.shard) in shards
        }
        lines = [hits[number] for number in sorted(hits)]
        return tuple(_query(index, line) for index, line in enumerate(lines))

    def unmatched(self, units: Sequence[Unit]) -> list[Problem]:
        """A problem for each line that asks about no screen of these units."""
        anywhere: set[str] = set()
        within: dict[str, set[str]] = {}
        for unit in units:
            keys = {key for member in unit.members for key in _member_keys(member.name)}
            anywhere |= keys
            for shard in _shard_keys(unit.shard.uri):
                within.setdefault(shard, set()).update(keys)
        return [self._problem(line) for line in self.lines if not _matched(line, anywhere, within)]

    def _problem(self, line: Line) -> Problem:
        place = f" in {line.shard}" if line.shard else ""
        detail = f"{self.uri}, line {line.number}: no screen named {line.member}{place}"
        return Problem(line.member, RejectReason.QUERY_UNMATCHED, detail)

    @cached_property
    def _by_member(self) -> dict[str, list[Line]]:
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault(_nfc(line.member), []).append(line)
        return found


def load_queries(uri: str, s3_endpoint: S3Address = None) -> QueriesFile:
    """Read a queries file: JSON Lines, or CSV where its name ends in `.csv`.

    Fields: `member` and `instruction`, optionally `shard` (URI or base name) and `bbox_px`
    (x1, y1, x2, y2 in original upright pixels). Other fields are ignored.

    Args:
        uri: local path or `s3://` URI.
        s3_endpoint: address of an S3-compatible server.

    Raises:
        ConfigError: naming the line and what is wrong with it, or if there is no such file.
        StorageError: if the store does not answer.
    """
    try:
        data = storage_for(uri, s3_endpoint).read(normalize_uri(uri))
    except (ObjectMissingError, ObjectDeniedError) as error:
        raise ConfigError(f"input.queries: {error}") from error
    return QueriesFile(uri, read_lines(uri, data), sha256_hex(data))


def _nfc(text: str) -> str:
    return normalize("NFC", text)


def _member_keys(name: str) -> set[str]:
    """Names under which a line may ask about a member."""
    base = name.rpartition("/")[2]
    return {_nfc(key) for key in (name, base, PurePosixPath(base).stem)}


def _shard_keys(uri: str) -> set[str]:
    return {_nfc(uri), _nfc(uri.rstrip("/")), _nfc(uri.rstrip("/").rpartition("/")[2])}


def _matched(line: Line, anywhere: set[str], within: dict[str, set[str]]) -> bool:
    keys = anywhere if line.shard is None else within.get(_nfc(line.shard), set())
    return _nfc(line.member) in keys


def _query(index: int, line: Line) -> Query:
    return Query(
        index=index,
        kind=QueryKind.GROUNDING,
        instruction=line.instruction,
        origin=QueryOrigin.QUERIES_FILE,
        instruction_raw=line.instruction_raw,
        truth=Truth(present=True, boxes=(TruthBox(line.box),)) if line.box else None,
    )
