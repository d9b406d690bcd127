"""Read one completion: total on any text, and nothing in the result that the model did not say."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codes import SampleStatus
from schemas.geometry import FrameKind, SeenImage
from schemas.records import Item, Parsed
from transforms.parse.documents import Document, JsonValue, read_document
from transforms.parse.formats import READERS
from transforms.parse.places import Place, locate
from transforms.parse.text import MAX_CHARS, MAX_DOCUMENTS, find_documents, split_reasoning

ANSWER_FORMATS = tuple(sorted(READERS))
"""Names a profile's `answer_format` may have."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The JSON value of an answer, or why there is none."""

    value: JsonValue
    status: SampleStatus | None
    flags: frozenset[str]


def parse_answer(
    text: str, finish_reason: str, answer_format: str, frame: FrameKind, seen: SeenImage
) -> Parsed:
    """Geometry in original upright pixels, with a status and a flag for each liberty taken.

    Strict JSON is tried first, then fences, surrounding prose, trailing commas and raw control
    characters are forgiven. Coordinates up to 2 % of the image outside it are clipped
    (`places.TOLERANCE`), others make the element `out_of_frame`. In a list, elements that cannot
    be used are left out and flagged; the answer is ok while one is left.

    Args:
        text: the completion, any string at all.
        finish_reason: the engine's word; `length` makes an incomplete answer `truncated`.
        answer_format: one of `ANSWER_FORMATS`.
        frame: the convention of the numbers, measured on `seen`.
        seen: how the shown image was made from the original.

    Raises:
        KeyError: for an unknown `answer_format`; nothing in `text` raises.
    """
    reader = READERS[answer_format]
    reading = _read(text, cut=finish_reason == "length")
    flags = set(reading.flags)
    if reading.status is not None:
        return _result(reading.status, flags)
    raw = reader(reading.value)
    if raw is None:
        return _result(SampleStatus.UNPARSEABLE, flags | {"other_form"})
    if not raw:
        return _result(SampleStatus.ABSENT, flags)
    return _collect([locate(place, frame, seen) for place in raw], flags)


def _result(status: SampleStatus, flags: set[str], items: tuple[Item, ...] = ()) -> Parsed:
    return Parsed(status, items, tuple(sorted(flags)))


def _read(text: str, *, cut: bool) -> _Reading:
    if len(text) > MAX_CHARS:
        return _Reading(None, SampleStatus.UNPARSEABLE, frozenset({"too_long"}))
    whole = text.strip()
    if whole[:1] in ("{", "[") and "<think>" in whole:
        # A label may quote a tag: if all of it is one JSON document, there is no reasoning.
        found = find_documents(whole)
        if found.spans == [(0, len(whole))]:
            return _read_body(whole, frozenset(), cut=cut, thinking=False)
    body = split_reasoning(text)
    return _read_body(body.text, body.flags, cut=cut, thinking=body.thinking)


def _read_body(body: str, flags: frozenset[str], *, cut: bool, thinking: bool) -> _Reading:
    """Choose the one JSON document of an answer without reasoning."""
    incomplete = SampleStatus.TRUNCATED if cut else SampleStatus.UNPARSEABLE
    if not body:
        status = SampleStatus.TRUNCATED if cut and thinking else SampleStatus.NO_ANSWER
        return _Reading(None, status, flags)
    found = find_documents(body)
    if found.too_deep:
        return _Reading(None, SampleStatus.UNPARSEABLE, flags | {"nested_too_deep"})
    flags |= {"fenced"} if found.fenced else frozenset()
    if found.unclosed:
        return _Reading(None, incomplete, flags | {"unclosed"})
    if len(found.spans) > MAX_DOCUMENTS:
        return _Reading(None, SampleStatus.UNPARSEABLE, flags | {"several_answers"})
    documents = [read_document(body[start:end]) for start, end in found.spans]
    read = [document for document in documents if document is not None]
    if not read:
        return _Reading(None, incomplete, flags | {"no_json"})
    flags |= {"text_around"} if found.prose or len(read) < len(documents) else frozenset()
    flags |= {"token_limit"} if cut else frozenset()
    return _only(read, flags)


def _only(documents: list[Document], flags: frozenset[str]) -> _Reading:
    """The value of the documents if they agree; nothing is chosen between two answers."""
    first = documents[0]
    flags = flags.union(*(document.flags for document in documents))
    if any(document.non_finite for document in documents):
        return _Reading(None, SampleStatus.UNPARSEABLE, flags | {"non_finite"})
    if any(document.conflict for document in documents):
        return _Reading(None, SampleStatus.UNPARSEABLE, flags)
    if any(document.value != first.value for document in documents[1:]):
        return _Reading(None, SampleStatus.UNPARSEABLE, flags | {"several_answers"})
    if len(documents) > 1:
        flags |= {"repeated_answer"}
    return _Reading(first.value, None, flags)


def _collect(places: list[Place], flags: set[str]) -> Parsed:
    flags = flags.union(*(place.flags for place in places))
    items = [place.item for place in places if place.item is not None]
    if not items:
        return _result(places[0].status, flags)
    flags |= {f"dropped_{place.status}" for place in places if place.item is None}
    kept = tuple(dict.fromkeys(items))
    if len(kept) < len(items):
        flags.add("repeated_items")
    return _result(SampleStatus.OK, flags, kept)
