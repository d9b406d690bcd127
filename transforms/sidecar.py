"""The JSON file beside a screenshot: where it comes from, what to ask, what is true.

Truth is kept to evaluate and is never shown to a model.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from schemas.codes import QueryKind, QueryOrigin, RejectReason, Stage
from schemas.geometry import Box, Size
from schemas.ids import canonical_json
from schemas.provenance import Provenance
from schemas.records import Query, Reject, TruthBox
from transforms.sidecar_boxes import RATIO_KEYS, BoxConvention, lie_in_corner
from transforms.sidecar_masks import MASKS, UNREADABLE, read_masks
from transforms.sidecar_statement import (
    Statement,
    device_pixel_ratio,
    is_number,
    read_statement,
    without_truth,
)
from transforms.sidecar_truth import TruthReader
from transforms.source_text import (
    clean,
    composed,
    decode_text,
    encoding_name,
    instruction,
    is_mojibake,
    load_json,
)

_DETAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One sidecar, read.

    Attributes:
        queries: valid grounding queries; `index` is the position in the file.
        elements: visible elements that nothing covers: truth for localization.
        image_size: size of the image as the sidecar states it, or None.
        flags: what was noticed, sorted: `encoding_*`, `mojibake`, `truth_dropped`,
            `truth_clipped`, `truth_contradicts` and `truth_looks_xywh` (all truth is left out),
            `truth_in_corner`, `replacement_char`, `provenance_dropped` (`app`, `locale` and their
            like that are no text).
        encoding: of its text, or None where there is no sidecar.
        masks: what no person may see, original upright pixels; None where it does not say, or not
            so that it can be read (`masks_unreadable`).
        rejects: what could not be used, without member and screen, which the caller knows.
    """

    provenance: Provenance = field(default_factory=Provenance)
    queries: tuple[Query, ...] = ()
    elements: tuple[TruthBox, ...] = ()
    image_size: Size | None = None
    flags: tuple[str, ...] = ()
    rejects: tuple[Reject, ...] = ()
    encoding: str | None = None
    masks: tuple[Box, ...] | None = None


def parse_sidecar(
    data: bytes | None, size: Size | None = None, boxes: BoxConvention | None = None
) -> Sidecar:
    """Read a sidecar; nothing in it can cost the screen more than its queries.

    Known fields are described in the README; all others are ignored. A query is an object with
    `instruction`, or a plain text. `bbox_px` is (x1, y1, x2, y2) in original upright pixels where
    nothing else is declared, `bbox` is what is declared; many boxes that contradict it cost the
    screen all its truth. `target: null` without a box says that the target is not on the screen; a
    query without either has no truth.

    Args:
        data: the file, or None where there is none.
        size: upright size of the image, to which truth boxes are clipped; by default the
            `image_size` that the sidecar states.
        boxes: how boxes are meant, as the job declares it; the sidecar's own word wins.
    """
    if data is None:
        return Sidecar()
    text, flags = decode_text(data)
    try:
        fields = load_json(text)
    except ValueError as error:
        return _invalid(str(error), flags)
    if not isinstance(fields, dict):
        return _invalid(f"a JSON object is expected, this is {type(fields).__name__}", flags)
    noticed = {*flags, "replacement_char"} if "\ufffd" in text else set(flags)
    sidecar = _read(fields, size, boxes, noticed)
    return dataclasses.replace(sidecar, encoding=encoding_name(flags))


def sidecar_fields(data: bytes | None) -> dict[str, object] | None:
    """The JSON object of a sidecar, or None where there is none that can be read."""
    try:
        fields = load_json(decode_text(data)[0]) if data is not None else None
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _invalid(detail: str, flags: tuple[str, ...]) -> Sidecar:
    reject = _reject(RejectReason.SIDECAR_INVALID, detail)
    return Sidecar(flags=flags, rejects=(reject,), encoding=encoding_name(flags))


def _reject(reason: RejectReason, detail: str, text: str | None = None) -> Reject:
    return Reject(Stage.COMPOSE, reason, detail, instruction=text)


def _read(
    fields: dict[str, object], size: Size | None, boxes: BoxConvention | None, flags: set[str]
) -> Sidecar:
    stated = _size(fields.get("image_size"))
    statement = read_statement(fields, size or stated, boxes)
    fields, doubts = _doubtful(fields, statement, flags)
    convention = statement.convention or BoxConvention()
    truth = TruthReader(fields.get("elements"), statement.page, convention)
    given = fields.get("queries") or []
    queries: list[Query] = []
    rejects: list[Reject] = list(doubts)
    if not isinstance(given, list):
        rejects.append(_reject(RejectReason.SIDECAR_INVALID, "`queries` must be a list"))
        given = []
    for index, value in enumerate(given):
        item = _query(index, value, truth)
        if isinstance(item, Reject):
            rejects.append(item)
        else:
            queries.append(item)
    provenance = _provenance(fields)
    flags |= {"provenance_dropped"} if _loses(fields, provenance) else set()
    texts = (*(query.instruction for query in queries), provenance.page_title or "")
    flags |= {"mojibake"} if any(map(is_mojibake, texts)) else set()
    elements = truth.elements()
    masks = None if statement.doubt else read_masks(fields, statement.page, convention)
    if masks is None and MASKS in fields:
        flags.add(UNREADABLE)
    return Sidecar(
        provenance=provenance,
        queries=tuple(queries),
        elements=elements,
        image_size=stated,
        flags=tuple(sorted(flags | truth.flags)),
        rejects=tuple(rejects),
        masks=masks,
    )


def _doubtful(
    fields: dict[str, object], statement: Statement, flags: set[str]
) -> tuple[dict[str, object], list[Reject]]:
    """Look at all boxes together: one that is wrong is dropped later, many contradict."""
    doubt = statement.doubt
    if doubt is not None:
        flags.add("truth_contradicts")
        if doubt.likely == BoxConvention("xywh", "px"):
            flags.add("truth_looks_xywh")
        detail = f"{doubt.said}. All truth of this screen is left out"
        return without_truth(fields), [_reject(RejectReason.SIDECAR_INVALID, detail)]
    size = statement.page.size
    scaled = device_pixel_ratio(fields) is not None or fields.get("image_size") is not None
    in_pixels = statement.convention == BoxConvention()
    if size and in_pixels and not scaled and lie_in_corner(statement.boxes, size):
        flags.add("truth_in_corner")
    return fields, []


def _query(index: int, value: object, truth: TruthReader) -> Query | Reject:
    fields: dict[str, object] = value if isinstance(value, dict) else {"instruction": value}
    text = fields.get("instruction")
    if not isinstance(text, str) or not instruction(text)[0]:
        shown = clean(canonical_json(value))[:_DETAIL_CHARS]  # type: ignore[arg-type] # came from JSON
        detail = f"query {index} has no instruction text: {shown}"
        return _reject(RejectReason.QUERY_INVALID, detail, shown)
    tidy, raw = instruction(text)
    return Query(
        index=index,
        kind=QueryKind.GROUNDING,
        instruction=tidy,
        origin=QueryOrigin.SIDECAR,
        instruction_raw=raw,
        truth=truth.of_query(fields),
    )


def _provenance(fields: dict[str, object]) -> Provenance:
    return Provenance(
        app=_text(fields.get("app")),
        app_version=_text(fields.get("app_version")),
        licence=_text(fields.get("licence", fields.get("license"))),
        locale=_text(fields.get("locale")),
        html_lang=_text(fields.get("html_lang")),
        page_title=_text(fields.get("page_title")),
        url_path=_text(fields.get("url_path")),
        color_scheme=_text(fields.get("color_scheme")),
        device_pixel_ratio=device_pixel_ratio(fields),
        source=_text(fields.get("source")),
        task=_text(fields.get("task")),
        step=_step(fields.get("step")),
    )


def _loses(fields: dict[str, object], read: Provenance) -> bool:
    """Whether something is stated about the screen that is not what its column can hold."""
    stated = {field.name: fields.get(field.name) for field in dataclasses.fields(Provenance)}
    stated["licence"] = fields.get("licence", fields.get("license"))
    ratios = (fields.get(key) for key in RATIO_KEYS)
    stated["device_pixel_ratio"] = next((ratio for ratio in ratios if ratio is not None), None)
    return any(
        value not in (None, "") and getattr(read, name) is None for name, value in stated.items()
    )


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return composed(value) or None
    return str(value) if is_number(value) else None


def _step(value: object) -> int | None:
    """A count that the column can hold; JSON knows no limit."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**31 else None


def _size(value: object) -> Size | None:
    """`[W, H]` in pixels, or None where it is missing or senseless."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    width, height = value
    whole = isinstance(width, int) and isinstance(height, int)
    if whole and min(width, height) >= 1 and all(map(is_number, value)):
        return Size(width, height)
    return None
