"""Records that pass between stages. Frozen, plain, and small where they cross a Beam edge."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from schemas.codes import QueryKind, QueryOrigin, RejectReason, Role, SampleStatus, Stage
from schemas.copies import CopyOf, Look
from schemas.geometry import Box, Point, SeenImage, Size
from schemas.provenance import Provenance


class ShardKind(StrEnum):
    """The container a shard is."""

    TAR = "tar"
    FOLDER = "folder"
    PARQUET = "parquet"
    ZIP = "zip"
    WEBVOYAGER = "webvoyager"


@dataclass(frozen=True, slots=True)
class ShardDefaults:
    """What a `shard.toml` says of the screens beside and below it.

    Attributes:
        folder: the part of the shard it speaks of, relative and ending in `/`; empty = all of it.
        fields: names of sidecar fields and their text, sorted; a screen's own sidecar wins.
    """

    folder: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shard:
    """A file or folder of screenshots.

    Attributes:
        uri: absolute local path or `s3://bucket/key`; a folder or prefix ends in `/`.
        kind: its container.
        byte_size: size of the file (0 for a folder), so that a changed shard is noticed.
        version: ETag on S3, else empty.
        defaults: what `shard.toml` files say, the deepest folder first.
    """

    uri: str
    kind: ShardKind
    byte_size: int = 0
    version: str = ""
    defaults: tuple[ShardDefaults, ...] = ()


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A named run of bytes: a slice of a file, or a whole file or object (`offset` None).

    In a zip, `offset` is where the entry's own header begins, and `size` its uncompressed length.
    """

    name: str
    offset: int | None
    size: int


@dataclass(frozen=True, slots=True)
class Member:
    """One screenshot of a shard: where its bytes and its sidecar's bytes are.

    Attributes:
        name: unique in the shard; the raw name in the container, or `row-<n>` in Parquet, with
            `-<i>` behind it where a row holds a list of images.
        image: where the image bytes are.
        sidecar: where the sidecar's bytes are, or None: a JSON file, a record of a metadata file,
            or the messages of an agent's run.
        row: row number in a Parquet shard, else None.
        sidecar_row: row number in the metadata file, where that is a Parquet file.
        flags: what was noticed while listing, sorted, for example `name_cp1252`.
        copy, look: which earlier pictures it is a copy of, and looks like, once that is known.
    """

    name: str
    image: ByteRange
    sidecar: ByteRange | None = None
    row: int | None = None
    sidecar_row: int | None = None
    flags: tuple[str, ...] = ()
    copy: CopyOf | None = None
    look: Look | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something found wrong with a shard or a member while planning; becomes a reject."""

    member: str | None
    reason: RejectReason
    detail: str

    @property
    def is_member(self) -> bool:
        """Whether it stands for a member or a shard, rather than for a query without a screen."""
        return self.reason is not RejectReason.QUERY_UNMATCHED


@dataclass(frozen=True, slots=True)
class Unit:
    """A slice of a shard: the atom of work, commit and resume.

    Attributes:
        unit_id: hash of the shard's URI and the members' names and sizes.
        index: position in its shard, from 0.
        members: at most `unit_screens` screenshots.
        problems: what the plan found; these are rejects of this unit.
    """

    unit_id: str
    shard: Shard
    index: int
    members: tuple[Member, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Lot:
    """A run of neighbouring units handed to one worker at once: one Beam element.

    It is pickled small: a runner keeps several copies of every element until its work is done.
    """

    index: int
    units: tuple[Unit, ...]

    def __reduce__(self) -> tuple[Callable[[int, bytes], Lot], tuple[int, bytes]]:
        return _unpacked_lot, (self.index, zlib.compress(pickle.dumps(self.units), level=1))


def _unpacked_lot(index: int, units: bytes) -> Lot:
    return Lot(index, pickle.loads(zlib.decompress(units)))  # noqa: S301 - made by Lot.__reduce__


@dataclass(frozen=True, slots=True)
class Reject:
    """One item that could not be used: a row of `rejects`."""

    stage: Stage
    reason: RejectReason
    detail: str
    member: str | None = None
    screen_id: str | None = None
    sample_id: str | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class TruthBox:
    """A true box in original upright pixels, with what the sidecar says of it."""

    box: Box
    role: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known to be right; never shown to the model, kept to evaluate.

    Attributes:
        present: whether the target is on the screen.
        boxes: grounding: the target's box, then other boxes where a click is also right;
            localization: every visible element.
    """

    present: bool
    boxes: tuple[TruthBox, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One question about one screen.

    Attributes:
        index: position among the screen's queries, from 0.
        instruction: NFC text; `instruction_raw` is what was given, when it differs.
    """

    index: int
    kind: QueryKind
    instruction: str
    origin: QueryOrigin
    instruction_raw: str | None = None
    truth: Truth | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """One decoded screenshot, without its pixels.

    Attributes:
        screen_id: SHA-256 of the original bytes, hex.
        size: upright size in pixels, after EXIF orientation.
        orientation: EXIF orientation tag that was applied, 1 = none.
        flags: what was noticed, for example `alpha_composited`, `size_mismatch`.
        frame_count: frames, pages or pictures in the file; the first is used.
        sidecar_encoding: of the sidecar's text, or None where there is no sidecar.
        masks: what no person may see, original upright pixels; None where nobody has said.
    """

    screen_id: str
    member: Member
    size: Size
    image_format: str
    image_mode: str
    byte_size: int
    orientation: int
    provenance: Provenance
    queries: tuple[Query, ...]
    flags: tuple[str, ...] = ()
    frame_count: int = 1
    sidecar_encoding: str | None = None
    masks: tuple[Box, ...] | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A query as it is put to one model: query x prompt x model x sampling.

    Attributes:
        sample_id: hash of exactly those and the screen id.
        prompt: the text shown to the model, after the image.
        seen: how the shown image was made from the original.
    """

    sample_id: str
    screen_id: str
    query: Query
    prompt: str
    prompt_version: str
    seen: SeenImage


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer text as the model gave it.

    Attributes:
        finish_reason: the engine's word: `stop`, `length`, `abort`, ...
    """

    text: str
    finish_reason: str
    token_count: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The engine's reply to one request: completions, or the reason there are none."""

    request_id: str
    completions: tuple[Completion, ...] = ()
    prompt_tokens: int = 0
    cached_tokens: int = 0
    error_reason: RejectReason | None = None
    error_detail: str = ""
    image_tokens: int | None = None  # of the prompt's tokens, those that stand for the image
    first_token_seconds: float | None = None  # from its arrival; None = the engine does not count


@dataclass(frozen=True, slots=True)
class Item:
    """One located thing in original upright pixels: a point, a box, or both."""

    point: Point | None = None
    box: Box | None = None
    label: str | None = None
    role: Role | None = None
    action: str | None = None  # what the model would do there, where the format says


@dataclass(frozen=True, slots=True)
class Parsed:
    """One completion, read: the output contract of every parser.

    Attributes:
        items: located things, in the order of the answer; empty unless `status` is ok, or
            `truncated` with elements that were complete before the cut.
        flags: what was repaired or noticed, sorted.
        collapsed: elements that said the same as an earlier one and were left out.
    """

    status: SampleStatus
    items: tuple[Item, ...] = ()
    flags: tuple[str, ...] = ()
    collapsed: int = 0
