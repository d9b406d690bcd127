"""Units to decoded screens: read bytes, decode pixels, join the sidecar and the queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from schemas.codes import QueryKind, QueryOrigin, RejectReason, Stage
from schemas.errors import MemberRejected
from schemas.geometry import Size, clip_box
from schemas.ids import sha256_hex
from schemas.provenance import Provenance
from schemas.records import Member, Query, Reject, Screen, Truth, Unit
from transforms.blank_truth import without_blank_truth
from transforms.decode import DecodedImage, ImageSettings, decode_image
from transforms.pixel_limits import raw_weight
from transforms.prefetch import parallel_flat_map
from transforms.queries import QueriesFile
from transforms.shards import IndexStore, RawScreen, read_unit
from transforms.sidecar import Sidecar, parse_sidecar
from transforms.sidecar_boxes import BoxConvention, convention_of_shard
from transforms.source_text import holds_tokens, is_mojibake
from transforms.storage import S3Address
from transforms.work import Decoded, DecodeEvent, Refused, UnitEnd

ENUMERATE_INSTRUCTION = "Todos los elementos de la interfaz"
"""The localization query, "all elements", as it is put in the prompt and shown to reviewers."""

DECODE_AHEAD = 8
"""Screens decoded ahead of their turn: enough to hide a slow one, few enough to bound memory."""

RawEvent: TypeAlias = "tuple[Unit, RawScreen] | Refused | UnitEnd"
EnumerateMode: TypeAlias = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How screens are read.

    Attributes:
        images: which image files are taken.
        enumerate_elements: ask the localization query always, never, or (`auto`) of screens
            without a query of their own.
        can_enumerate: whether the profile has a localization task.
        queries: the queries file, or None.
        boxes: how the boxes of sidecars are meant, where the job declares it.
        kept: kept indexes of the shards, or None.
    """

    images: ImageSettings
    enumerate_elements: EnumerateMode
    can_enumerate: bool
    queries: QueriesFile | None = None
    boxes: BoxConvention | None = None
    s3_endpoint: S3Address = None
    kept: IndexStore | None = None


def read(units: Iterable[Unit], settings: LoadSettings) -> Iterator[RawEvent]:
    """The bytes of every member, and the rejects of the plan and of reading."""
    for unit in units:
        for problem in unit.problems:
            reject = Reject(Stage.PLAN, problem.reason, problem.detail, problem.member)
            is_query = not problem.is_member
            yield Refused(unit, reject, not is_query, is_query, before_screen=is_query)
        yield from _look_alikes(unit)
        wanted = tuple(member for member in unit.members if not _is_skipped(member))
        part = dataclasses.replace(unit, members=wanted)
        for item in read_unit(part, settings.s3_endpoint, settings.kept):
            if isinstance(item, Reject):
                yield Refused(unit, item, is_member=True)
            else:
                yield unit, item
        yield UnitEnd(unit)


def _is_skipped(member: Member) -> bool:
    return member.look is not None and member.look.skipped


def _look_alikes(unit: Unit) -> Iterator[Refused]:
    """A reject for each member that is left out because it looks like an earlier one."""
    for member in unit.members:
        look = member.look
        if look is not None and look.skipped:
            detail = f"looks like {look.near}: {look.distance} of 256 bits differ"
            reason = RejectReason.NEAR_DUPLICATE
            reject = Reject(Stage.PLAN, reason, detail, member.name, look.screen_id)
            yield Refused(unit, reject, is_member=True)


def decode(
    events: Iterable[RawEvent],
    settings: LoadSettings,
    executor: Executor,
    most: int | None = None,
) -> Iterator[DecodeEvent]:
    """Pixels and queries of every screen, decoded on `executor`, in order.

    Args:
        events: files.
        settings: how they are read.
        executor: decodes up to `DECODE_AHEAD` ahead of their turn.
        most: bytes that these may take.
    """
    work = partial(_decode, settings)
    return parallel_flat_map(executor, work, events, DECODE_AHEAD, _weight, most)


def _weight(event: RawEvent) -> int:
    return raw_weight(event[1].data) if isinstance(event, tuple) else 0


def _decode(settings: LoadSettings, event: RawEvent) -> list[DecodeEvent]:
    if not isinstance(event, tuple):
        return [event]
    unit, raw = event
    try:
        decoded = decode_image(raw.data, settings.images)
    except MemberRejected as error:
        return [_refused(unit, raw, Stage.DECODE, error)]
    declared = convention_of_shard(raw.defaults) or settings.boxes
    sidecar = parse_sidecar(raw.sidecar, decoded.size, declared)
    screen = _screen(unit, raw, decoded, sidecar, settings)
    return [*_sidecar_rejects(unit, raw, screen, sidecar), Decoded(unit, screen, decoded.image)]


def _refused(unit: Unit, raw: RawScreen, stage: Stage, error: MemberRejected) -> Refused:
    reject = Reject(
        stage, error.reason, error.detail, raw.member.name, screen_id=sha256_hex(raw.data)
    )
    return Refused(unit, reject, is_member=True)


def _sidecar_rejects(
    unit: Unit, raw: RawScreen, screen: Screen, sidecar: Sidecar
) -> Iterator[Refused]:
    """Refused queries count as queries; a sidecar that cannot be read is a notice."""
    for reject in sidecar.rejects:
        named = dataclasses.replace(reject, member=raw.member.name, screen_id=screen.screen_id)
        is_query = reject.instruction is not None
        yield Refused(unit, named, is_query=is_query, before_screen=is_query)


def _screen(
    unit: Unit,
    raw: RawScreen,
    decoded: DecodedImage,
    sidecar: Sidecar,
    settings: LoadSettings,
) -> Screen:
    flags = set(decoded.flags) | set(sidecar.flags) | set(raw.member.flags)
    if sidecar.image_size is not None and sidecar.image_size != decoded.size:
        flags.add("sidecar_size_differs")
    asked = _queries(unit, raw, sidecar, settings, decoded.size)
    flags |= {"truth_dropped"} if any(lost for _, lost in asked) else set()
    queries, blank = without_blank_truth(tuple(query for query, _ in asked), decoded.image)
    if blank:
        flags.add("empty_region")
    if not queries:
        flags.add("no_queries")
    if any(holds_tokens(query.instruction_raw or "") for query in queries):
        flags.add("special_tokens_neutralised")
    if any(is_mojibake(query.instruction) for query in queries):
        flags.add("mojibake")
    return Screen(
        screen_id=sha256_hex(raw.data),
        member=raw.member,
        size=decoded.size,
        image_format=decoded.image_format,
        image_mode=decoded.image_mode,
        byte_size=len(raw.data),
        orientation=decoded.orientation,
        provenance=_with_defaults(sidecar.provenance, raw.defaults),
        queries=queries,
        flags=tuple(sorted(flags)),
        frame_count=decoded.frame_count,
        sidecar_encoding=sidecar.encoding,
        masks=sidecar.masks,
    )


def _with_defaults(provenance: Provenance, defaults: tuple[tuple[str, str], ...]) -> Provenance:
    """What the sidecar says, and where it is silent, what `shard.toml` says."""
    facts = {name: text for name, text in defaults if not name.startswith("box_")}
    missing = {name: text for name, text in facts.items() if getattr(provenance, name) is None}
    return dataclasses.replace(provenance, **missing) if missing else provenance  # type: ignore[arg-type] # texts all


def _queries(
    unit: Unit, raw: RawScreen, sidecar: Sidecar, settings: LoadSettings, size: Size
) -> list[tuple[Query, bool]]:
    """The screen's queries in order, each with whether its truth lies off the image."""
    asked = [(query, False) for query in sidecar.queries]
    if settings.queries is not None:
        found = settings.queries.for_member(unit.shard.uri, raw.member.name)
        asked += [_on_image(query, size) for query in found]
    if _asks_for_all(settings, alone=not asked):
        asked.append((_enumerate_query(sidecar), False))
    return [(dataclasses.replace(query, index=i), lost) for i, (query, lost) in enumerate(asked)]


def _asks_for_all(settings: LoadSettings, *, alone: bool) -> bool:
    """Whether "all elements" is asked of a screen; `alone` = it has no query of its own."""
    wanted = settings.enumerate_elements
    return settings.can_enumerate and (wanted == "always" or (wanted == "auto" and alone))


def asked_of(
    shard_uri: str, member_name: str, instructions: Sequence[str], settings: LoadSettings
) -> list[tuple[QueryKind, str]]:
    """What would be asked of a screen, told without reading it.

    Args:
        shard_uri: where it is.
        member_name: its name there.
        instructions: the queries of its sidecar.
        settings: how screens are read.
    """
    asked = [(QueryKind.GROUNDING, text) for text in instructions]
    if settings.queries is not None:
        found = settings.queries.for_member(shard_uri, member_name)
        asked += [(query.kind, query.instruction) for query in found]
    if _asks_for_all(settings, alone=not asked):
        asked.append((QueryKind.LOCALIZATION, ENUMERATE_INSTRUCTION))
    return asked


def _on_image(query: Query, size: Size) -> tuple[Query, bool]:
    """A query of the queries file, whose truth was read before the image's size was known."""
    if query.truth is None or not query.truth.boxes:
        return query, False
    boxes = [(known, clip_box(known.box, size)) for known in query.truth.boxes]
    kept = tuple(dataclasses.replace(known, box=box) for known, box in boxes if box is not None)
    truth = dataclasses.replace(query.truth, boxes=kept) if kept else None
    return dataclasses.replace(query, truth=truth), not kept


def _enumerate_query(sidecar: Sidecar) -> Query:
    truth = Truth(present=True, boxes=sidecar.elements) if sidecar.elements else None
    return Query(
        index=0,
        kind=QueryKind.LOCALIZATION,
        instruction=ENUMERATE_INSTRUCTION,
        origin=QueryOrigin.ENUMERATE,
        truth=truth,
    )
