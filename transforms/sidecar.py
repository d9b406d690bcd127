"""The JSON file beside a screenshot: where it comes from, what to ask, what is true.

Truth is kept to evaluate and is never shown to a model.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from schemas.codes import QueryKind, QueryOrigin, RejectReason, Stage
from schemas.geometry import Size
from schemas.ids import canonical_json
from schemas.records import Provenance, Query, Reject, TruthBox
from transforms.sidecar_format import (
    lie_in_corner,
    looks_like_sizes,
    stated_boxes,
    without_truth,
)
from transforms.sidecar_truth import TruthReader
from transforms.source_text import clean, decode_text, instruction, is_mojibake, load_json

_DETAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One sidecar, read.

    Attributes:
        queries: valid grounding queries; `index` is the position in the file.
        elements: visible elements that nothing covers: truth for localization.
        image_size: size of the image as the sidecar states it, or None.
        flags: what was noticed, sorted: `encoding_*`, `mojibake`, `truth_dropped`,
            `truth_clipped`, `truth_looks_xywh` (all truth is left out), `truth_in_corner`.
        rejects: what could not be used, without member and screen, which the caller knows.
    """

    provenance: Provenance = field(default_factory=Provenance)
    queries: tuple[Query, ...] = ()
    elements: tuple[TruthBox, ...] = ()
    image_size: Size | None = None
    flags: tuple[str, ...] = ()
    rejects: tuple[Reject, ...] = ()


def parse_sidecar(data: bytes | None, size: Size | None = None) -> Sidecar:
    """Read a sidecar; nothing in it can cost the screen more than its queries.

    Known fields are described in the README; all others are ignored. A query is an object with
    `instruction`, or a plain text. `bbox_px` is (x1, y1, x2, y2) in original upright pixels;
    `target: null` without a box says that the target is not on the screen; a query without
    either has no truth.

    Args:
        data: the file, or None where there is none.
        size: upright size of the image, to which truth boxes are clipped; by default the
            `image_size` that the sidecar states.
    """
    if data is None:
        return Sidecar()
    text, flags = decode_text(data)
    try:
        fields = load_json(text)
    except ValueError as error:
        return _invalid(f"not JSON: {error}", flags)
    if not isinstance(fields, dict):
        return _invalid(f"a JSON object is expected, this is {type(fields).__name__}", flags)
    return _read(fields, size, set(flags))


def _invalid(detail: str, flags: tuple[str, ...]) -> Sidecar:
    return Sidecar(flags=flags, rejects=(_reject(RejectReason.SIDECAR_INVALID, detail),))


def _reject(reason: RejectReason, detail: str, text: str | None = None) -> Reject:
    return Reject(Stage.COMPOSE, reason, detail, instruction=text)


def _read(fields: dict[str, object], size: Size | None, flags: set[str]) -> Sidecar:
    stated = _size(fields.get("image_size"))
    fields, doubts = _doubtful(fields, size or stated, flags)
    truth = TruthReader(fields.get("elements"), size or stated)
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
            flags |= {"mojibake"} if is_mojibake(item.instruction) else set()
    elements = truth.elements()
    return Sidecar(
        provenance=_provenance(fields),
        queries=tuple(queries),
        elements=elements,
        image_size=stated,
        flags=tuple(sorted(flags | truth.flags)),
        rejects=tuple(rejects),
    )


def _doubtful(
    fields: dict[str, object], size: Size | None, flags: set[str]
) -> tuple[dict[str, object], list[Reject]]:
    """Look at all boxes together: one that is wrong is dropped later, many are another format."""
    boxes = stated_boxes(fields)
    if looks_like_sizes(boxes):
        flags.add("truth_looks_xywh")
        detail = (
            "`bbox_px` must be (x1, y1, x2, y2), but many boxes here end before they begin: are "
            "they (left, top, width, height)? All truth of this screen is left out"
        )
        return without_truth(fields), [_reject(RejectReason.SIDECAR_INVALID, detail)]
    unscaled = fields.get("device_pixel_ratio") is None and fields.get("image_size") is None
    if size is not None and unscaled and lie_in_corner(boxes, size):
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
    ratio = fields.get("device_pixel_ratio")
    return Provenance(
        app=_text(fields.get("app")),
        app_version=_text(fields.get("app_version")),
        licence=_text(fields.get("licence", fields.get("license"))),
        locale=_text(fields.get("locale")),
        html_lang=_text(fields.get("html_lang")),
        page_title=_text(fields.get("page_title")),
        url_path=_text(fields.get("url_path")),
        color_scheme=_text(fields.get("color_scheme")),
        device_pixel_ratio=float(ratio) if _is_number(ratio) else None,  # type: ignore[arg-type] # checked
        source=_text(fields.get("source")),
        task=_text(fields.get("task")),
        step=_step(fields.get("step")),
    )


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return clean(value) or None
    return str(value) if _is_number(value) else None


def _step(value: object) -> int | None:
    """A count that the column can hold; JSON knows no limit."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**31 else None


def _is_number(value: object) -> bool:
    """Whether `value` is a finite number; JSON as Python reads it has NaN and endless integers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _size(value: object) -> Size | None:
    """`[W, H]` in pixels, or None where it is missing or senseless."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    width, height = value
    whole = isinstance(width, int) and isinstance(height, int)
    if whole and min(width, height) >= 1 and all(map(_is_number, value)):
        return Size(width, height)
    return None
