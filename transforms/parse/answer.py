"""Read one completion: total on any text, and nothing in the result that the model did not say."""

from __future__ import annotations

from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import FrameKind, SeenImage
from schemas.records import Parsed
from transforms.parse.formats import READERS
from transforms.parse.places import Place, locate
from transforms.parse.reading import Reading
from transforms.parse.text import MAX_CHARS

ANSWER_FORMATS = tuple(sorted(READERS))
"""Names a profile's `answer_format` may have."""


def parse_answer(
    text: str,
    finish_reason: str,
    answer_format: str,
    frame: FrameKind,
    seen: SeenImage,
    kind: QueryKind | None = None,
) -> Parsed:
    """Geometry in original upright pixels, with a status and a flag for each liberty taken.

    The format is read strictly first; what is repaired or noticed is flagged with a name of
    `transforms.parse.flags.FLAGS`. Coordinates up to 2 % of the image outside it are clipped
    (`places.TOLERANCE`), others make the element `out_of_frame`. In a list, elements that cannot
    be used are left out and flagged; the answer is ok while one is left. A list that the token
    limit cut is `truncated` and keeps its complete elements.

    Args:
        text: the completion, any string at all.
        finish_reason: the engine's word; `length` makes an incomplete answer `truncated`.
        answer_format: one of `ANSWER_FORMATS`.
        frame: the convention of the numbers, measured on `seen`.
        seen: how the shown image was made from the original.
        kind: what was asked. For grounding, two different elements are no answer: none is chosen.

    Raises:
        KeyError: for an unknown `answer_format`; nothing in `text` raises.
    """
    reader = READERS[answer_format]
    if len(text) > MAX_CHARS:
        return Parsed(SampleStatus.UNPARSEABLE, flags=("too_long",))
    cut = finish_reason == "length"
    parsed = _located(reader(text, cut), frame, seen, cut=cut)
    if kind is QueryKind.GROUNDING and len(parsed.items) > 1:
        return _result(SampleStatus.UNPARSEABLE, {*parsed.flags, "several_answers"})
    return parsed


def _located(reading: Reading, frame: FrameKind, seen: SeenImage, *, cut: bool) -> Parsed:
    """The places of a reading, checked and converted."""
    flags = set(reading.flags)
    if not reading.places:
        return _result(reading.status or SampleStatus.UNPARSEABLE, flags)
    if cut and reading.status is None:
        flags.add("token_limit")
    places = [locate(place, frame, seen) for place in reading.places]
    return _collect(places, flags, reading.status)


def _result(status: SampleStatus, flags: set[str]) -> Parsed:
    return Parsed(status, (), tuple(sorted(flags)))


def _collect(places: list[Place], flags: set[str], status: SampleStatus | None) -> Parsed:
    """Items of the usable places, each once; `status` overrides ok."""
    flags = flags.union(*(place.flags for place in places))
    items = [place.item for place in places if place.item is not None]
    if not items:
        return _result(status or places[0].status, flags)
    flags |= {f"dropped_{place.status}" for place in places if place.item is None}
    kept = tuple(dict.fromkeys(items))
    collapsed = len(items) - len(kept)
    if collapsed:
        flags.add("repeated_items")
    return Parsed(status or SampleStatus.OK, kept, tuple(sorted(flags)), collapsed)
