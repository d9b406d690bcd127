"""Packs a folder of screenshots into tars that read back as the same screens."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ByteSize, TypeAdapter, ValidationError

from schemas.errors import ConfigError, InputError
from schemas.records import Member, Reject, Shard, Unit
from transforms.shards import RawScreen, index_shard, list_shards, read_unit
from transforms.shards.index import FOLDERS
from transforms.shards.names import MESSAGES_NAME, base_name, is_sidecar
from transforms.shards.tar_series import PackedFile, TarSeries, WrittenTar
from transforms.source_text import decode_text, load_json
from transforms.storage import S3Address, join_uri, normalize_uri, storage_for

MIN_SIZE = 1_000_000
"""Bytes: smaller tars cost more to list than to read."""

MAX_S3_SIZE = 5 * 2**30
"""Bytes that one put to S3 takes (Amazon S3 user guide, "Uploading objects")."""

_STEM = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file of the folder that is in no tar."""

    member: str | None
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Packed:
    """What a pack did: `found` is `packed` plus the length of `left_out`.

    Attributes:
        found: images of the folder, and files of it that are neither image nor sidecar.
        packed: images that are in a tar, with their sidecars.
    """

    source: str
    found: int
    packed: int
    left_out: tuple[LeftOut, ...]
    tars: tuple[WrittenTar, ...]


def parse_size(text: str) -> int:
    """Bytes from `1GB`, `500 MB`, `2GiB` or a plain number.

    Raises:
        ConfigError: if it is none of these, or below `MIN_SIZE`.
    """
    try:
        size = int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        raise ConfigError(f"--size {text}: write it as 1GB, 500MB or 2GiB") from None
    if size < MIN_SIZE:
        raise ConfigError(f"--size {text}: must be at least {MIN_SIZE:,} bytes")
    return size


def pack(
    source: str,
    destination: str,
    size: int,
    *,
    source_s3: S3Address = None,
    destination_s3: S3Address = None,
    on_tar: Callable[[WrittenTar], None] = lambda _: None,
) -> Packed:
    """Pack a folder of images into `<name of the folder>-000000.tar` and following.

    Names, bytes and sidecars stay as they are; what comes from a metadata file, a `shard.toml` or
    a WebVoyager agent's messages becomes a sidecar. Done again over a finished or killed pack of
    the same folder, it adds what is missing.

    Args:
        source: a local folder or a prefix on S3.
        destination: another one; it is made where it is missing.
        size: bytes that no tar exceeds, unless one sample alone does.
        source_s3: how to reach the source.
        destination_s3: how to reach the destination.
        on_tar: told of each tar when it stands.

    Raises:
        InputError: if the source is no folder of images.
        ConfigError: if the destination cannot be used.
        StorageError: if a store does not answer.
    """
    shard = _folder(source, source_s3)
    target = normalize_uri(destination).rstrip("/")
    _check_target(shard, target, size)
    index, storage = index_shard(shard, source_s3), storage_for(target, destination_s3)
    left_out = [LeftOut(p.member, p.reason.value, p.detail) for p in index.problems]
    # A file without a name: whatever kills us, nothing of it stays.
    with tempfile.TemporaryFile(dir=_scratch_folder(target)) as scratch:
        series = TarSeries(target, _stem(shard.uri), size, storage, scratch, on_tar)
        packed = _pack(shard, index.members, series, left_out, source_s3)
    _check_leftovers([file.uri for file in storage.list(target)], series.written, target)
    found = len(index.members) + len(index.problems)
    return Packed(shard.uri, found, packed, tuple(left_out), tuple(series.written))


def _pack(
    shard: Shard,
    members: Sequence[Member],
    series: TarSeries,
    left_out: list[LeftOut],
    s3: S3Address,
) -> int:
    """Put every member that can be read into `series`; returns how many."""
    ordered = tuple(sorted(members, key=lambda member: (_key(member.name), member.name)))
    packed = 0
    for sample in _samples(read_unit(Unit("", shard, 0, ordered), s3), left_out):
        series.add(_files(sample))
        packed += len(sample)
    series.finish()
    return packed


def left_out_counts(packed: Packed) -> dict[str, int]:
    """How many were left out for each reason."""
    return dict(sorted(Counter(item.reason for item in packed.left_out).items()))


def _folder(source: str, s3: S3Address) -> Shard:
    shards = list_shards([source.rstrip("/") + "/"], s3)
    if len(shards) != 1 or shards[0].kind not in FOLDERS:
        kinds = ", ".join(sorted({shard.kind.value for shard in shards}))
        raise InputError(f"{source}: is no folder of images ({kinds}); only those are packed")
    return shards[0]


def _check_target(shard: Shard, target: str, size: int) -> None:
    if f"{target}/".startswith(shard.uri):
        raise ConfigError(f"{target}: lies in {shard.uri}, which is read at any depth")
    if target.startswith("s3://") and size > MAX_S3_SIZE:
        raise ConfigError(f"--size: S3 takes at most {MAX_S3_SIZE:,} bytes in one put")


def _scratch_folder(target: str) -> Path | None:
    """Where a tar is made before it gets its name: on the disk it will be on, where it is ours."""
    if target.startswith("s3://"):
        return None
    folder = Path(target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be made: {error.strerror}") from error
    return folder


def _stem(uri: str) -> str:
    """The folder's name, without what globs and shells give a meaning to."""
    name = uri.rstrip("/").rpartition("/")[2]
    return _STEM.sub("-", name).strip("-.") or "screens"


def _key(name: str) -> str:
    """WebDataset's sample key: the path up to the first dot of the file's name."""
    folder, slash, base = name.rpartition("/")
    return folder + slash + base.partition(".")[0]


def _samples(
    items: Iterable[RawScreen | Reject], left_out: list[LeftOut]
) -> Iterator[list[RawScreen]]:
    """Screens that share a sample key; what could not be read is noted as left out."""

    def key(item: RawScreen | Reject) -> str:
        return _key((item.member or "") if isinstance(item, Reject) else item.member.name)

    for _, group in itertools.groupby(items, key):
        sample: list[RawScreen] = []
        for item in group:
            if isinstance(item, Reject):
                left_out.append(LeftOut(item.member, item.reason.value, item.detail))
            else:
                sample.append(item)
        if sample:
            yield sample


def _files(sample: Sequence[RawScreen]) -> list[PackedFile]:
    """The images of a sample, each with its sidecar; a shared sidecar comes once."""
    files: dict[str, bytes] = {}
    for screen in sample:
        files[screen.member.name] = screen.data
        sidecar = _sidecar(screen)
        if sidecar is not None:
            files[_sidecar_name(screen.member, sample)] = sidecar
    return [PackedFile(name, data) for name, data in files.items()]


def _sidecar(screen: RawScreen) -> bytes | None:
    """The sidecar as it is, with what a `shard.toml` says where it is silent."""
    if not screen.defaults:
        return screen.sidecar
    try:
        fields = {} if screen.sidecar is None else load_json(decode_text(screen.sidecar)[0])
    except ValueError:
        return screen.sidecar  # the job will say what is wrong with it
    if not isinstance(fields, dict):
        return screen.sidecar
    missing = {key: text for key, text in screen.defaults if fields.get(key) is None}
    return json.dumps({**fields, **missing}, ensure_ascii=False).encode()


def _sidecar_name(member: Member, sample: Sequence[RawScreen]) -> str:
    """The name of a sidecar file as it is; that of one made from something else is the image's."""
    span = member.sidecar
    if span is not None and is_sidecar(span.name) and base_name(span.name) != MESSAGES_NAME:
        return span.name
    stem = member.name.rpartition(".")[0]
    shared = [other for other in sample if other.member.name.rpartition(".")[0] == stem]
    return f"{stem}.json" if len(shared) == 1 else f"{member.name}.json"


def _check_leftovers(names: Sequence[str], written: Sequence[WrittenTar], target: str) -> None:
    """Tars of an earlier, larger pack would be read beside ours: the person must decide."""
    if not written:
        return
    ours = {tar.uri for tar in written}
    pattern = re.compile(re.escape(written[0].uri[: -len("000000.tar")]) + r"\d{6}\.tar")
    others = [name for name in names if pattern.fullmatch(name) and name not in ours]
    if others:
        raise ConfigError(
            f"{join_uri(target, '')}: also holds {len(others)} tars that this folder does not give "
            f"(any more), such as {others[0]}; remove them, or pack into an empty folder"
        )
