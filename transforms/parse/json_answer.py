"""Find the one JSON value of an answer, strictly first, then with known repairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from schemas.codes import SampleStatus
from transforms.parse.documents import (
    Document,
    JsonValue,
    depth,
    read_cut_list,
    read_document,
    read_strict,
)
from transforms.parse.places import RawPlace
from transforms.parse.reading import AnswerReader, Reading, nothing_said, unreadable
from transforms.parse.text import (
    MAX_DEPTH,
    MAX_DOCUMENTS,
    Documents,
    find_documents,
    split_reasoning,
)
from transforms.parse.text_formats import read_tagged_instead

ValueReader: TypeAlias = "Callable[[JsonValue], list[RawPlace] | None]"
"""Elements of a value; an empty list where the format says "absent" so; None = another form."""


def json_reader(read_value: ValueReader) -> AnswerReader:
    """The reader of a format whose answers are one JSON value.

    Args:
        read_value: takes the value apart. It also gets the list of several tool calls as a list.
    """

    def read(text: str, cut: bool) -> Reading:
        whole = text.strip()
        if whole[:1] in ("{", "[") and "<think>" in whole:
            # A label may quote a tag: if all of it is one JSON document, there is no reasoning.
            found = find_documents(whole)
            if found.spans == [(0, len(whole))]:
                return _read_body(whole, frozenset(), read_value, cut=cut)
        body = split_reasoning(text)
        if not body.text:
            return nothing_said(body.flags, cut=cut, thinking=body.thinking)
        return _read_body(body.text, body.flags, read_value, cut=cut)

    return read


def _read_body(body: str, flags: frozenset[str], read_value: ValueReader, *, cut: bool) -> Reading:
    whole = read_strict(body) if body[0] in "{[" else None
    if whole is not None:
        if depth(whole.value, MAX_DEPTH) > MAX_DEPTH:
            return unreadable(flags | {"nested_too_deep"}, cut=False)
        return _cut_after(_one_value([whole], flags, read_value), cut=cut)
    found = find_documents(body)
    if found.too_deep:
        return unreadable(flags | {"nested_too_deep"}, cut=False)
    flags |= {"fenced"} if found.fenced else frozenset()
    if found.unclosed:
        return _read_cut(body, found, flags, read_value, cut=cut)
    if len(found.spans) > MAX_DOCUMENTS:
        return unreadable(flags | {"several_answers"}, cut=False)
    documents = [read_document(body[start:end]) for start, end in found.spans]
    read = [document for document in documents if document is not None]
    if not read:
        tagged = read_tagged_instead(body, flags, cut=cut)
        return tagged or unreadable(flags | {"no_json"}, cut=cut)
    if not _is_plain(found, read, documents):
        flags |= {"text_around"}
    return _cut_after(_one_value(read, flags, read_value), cut=cut)


def _cut_after(reading: Reading, *, cut: bool) -> Reading:
    """A settled reading says that the limit came after it; open ones get the flag later."""
    if reading.status is None or not cut:
        return reading
    return replace(reading, flags=reading.flags | {"token_limit"})


def _is_plain(found: Documents, read: list[Document], all_of: list[Document | None]) -> bool:
    """Whether nothing but the documents, their fence and call envelopes was written."""
    prose = found.prose.replace("<tool_call>", "").replace("</tool_call>", "").strip()
    return not prose and len(read) == len(all_of)


def _read_cut(
    body: str, found: Documents, flags: frozenset[str], read_value: ValueReader, *, cut: bool
) -> Reading:
    """An answer that ends inside a bracket: after a token limit, a list keeps what is complete."""
    flags |= {"unclosed"}
    rest = body[found.open_at :]
    if not cut or found.spans or not rest.startswith("["):
        return unreadable(flags, cut=cut)
    document = read_cut_list(rest)
    if document is None or document.conflict:
        return unreadable(flags, cut=True)
    places = read_value(document.value)
    if not places:
        return unreadable(flags, cut=True)
    flags |= document.flags | {"items_before_cut"}
    return Reading(tuple(places), SampleStatus.TRUNCATED, flags)


def _one_value(
    documents: list[Document], flags: frozenset[str], read_value: ValueReader
) -> Reading:
    """The value of the documents if they agree; nothing is chosen between two answers."""
    flags = flags.union(*(document.flags for document in documents))
    if any(document.non_finite for document in documents):
        return unreadable(flags | {"non_finite"}, cut=False)
    if any(document.conflict for document in documents):
        return unreadable(flags, cut=False)
    values: list[JsonValue] = [document.value for document in documents]
    if len(values) > 1 and all(is_call(value) for value in values):
        # Each call is an element of its own: what to do with several is for the caller.
        values, flags = [values], flags | {"several_calls"}
    if any(value != values[0] for value in values[1:]):
        return unreadable(flags | {"several_answers"}, cut=False)
    flags |= {"repeated_answer"} if len(values) > 1 else frozenset()
    places = read_value(values[0])
    if places is None:
        return unreadable(flags | {"other_form"}, cut=False)
    if not places:
        return Reading(status=SampleStatus.ABSENT, flags=flags)
    return Reading(tuple(places), None, flags)


def is_call(value: JsonValue) -> bool:
    """Whether a value is a tool call, `{"name": .., "arguments": {..}}`."""
    return isinstance(value, dict) and isinstance(value.get("arguments"), dict)
