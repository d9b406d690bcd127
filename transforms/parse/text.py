"""The text around an answer: reasoning, blanks, and the JSON documents inside."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_CHARS = 262_144
"""Longest answer that is read. The largest token limit of a profile gives about a tenth of it."""

MAX_DEPTH = 16
"""Deepest nesting that is read; an answer needs three levels."""

MAX_DOCUMENTS = 64
"""Most separate JSON documents that are read; one is asked for."""

_BLANK_RUN = re.compile(r"\s{64,}")
"""A run of blanks no sane answer holds: the sign of a grammar-bound whitespace loop."""

_END_OF_TURN = re.compile(r"(?:\s|<\|im_end\|>|<\|endoftext\|>|<\|end\|>|<\|eot_id\|>|</s>)+\Z")
"""What ends a turn, in the families that show special tokens: no part of the answer."""

_LONGEST_END = 256
_THINK_OPEN = "<think>"
_THINK_CLOSE = "</think>"
_BLANKS = "\ufeff \t\r\n\f\v\x00"
_SIGNS = re.compile(r'[{}\[\]"]')
_QUOTED_SIGNS = re.compile(r'\\.|"', re.DOTALL)
_CLOSES = {"}": "{", "]": "["}
_FENCE = re.compile(r"```(?:json)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Body:
    """An answer without its reasoning.

    Attributes:
        thinking: whether reasoning was begun and never ended.
    """

    text: str
    thinking: bool
    flags: frozenset[str]


def split_reasoning(text: str) -> Body:
    """Drop reasoning: everything up to the last `</think>`, and from an unclosed `<think>` on.

    The opening tag is often missing, because chat templates write it. Drafts inside reasoning are
    never taken for the answer.
    """
    flags = set()
    if _BLANK_RUN.search(text):
        flags.add("whitespace_loop")
    _, closed, rest = text.rpartition(_THINK_CLOSE)
    body, opened, _ = rest.partition(_THINK_OPEN)
    if closed or opened:
        flags.add("reasoning")
    return Body(_trim(body), bool(opened), frozenset(flags))


def _trim(text: str) -> str:
    text = text.strip(_BLANKS)
    start = max(0, len(text) - _LONGEST_END)
    end = _END_OF_TURN.search(text, start)
    return text[: end.start()].strip(_BLANKS) if end else text


@dataclass(slots=True)
class Documents:
    """Where the bracketed parts of a text are.

    Attributes:
        spans: `(start, end)` of each complete outermost `{...}` or `[...]`.
        unclosed: whether the text ends inside a bracket; `open_at` says where that part begins.
        too_deep: whether a part nests deeper than `MAX_DEPTH`; the search ends there.
        prose: the text outside all spans, without code fences.
    """

    spans: list[tuple[int, int]] = field(default_factory=list)
    unclosed: bool = False
    open_at: int = 0
    too_deep: bool = False
    prose: str = ""
    fenced: bool = False


def find_documents(text: str) -> Documents:
    """Find outermost bracketed parts in one pass; brackets inside JSON strings do not count."""
    found = Documents()
    stack: list[str] = []
    start = position = 0
    while sign := _SIGNS.search(text, position):
        position, mark = sign.end(), sign.group()
        if mark in "{[":
            start = sign.start() if not stack else start
            stack.append(mark)
            if len(stack) > MAX_DEPTH:
                found.too_deep = True
                return found
        elif mark == '"':
            position = _string_end(text, position) if stack else position
        elif stack and stack[-1] == _CLOSES[mark]:
            stack.pop()
            if not stack:
                found.spans.append((start, position))
        elif stack:  # a wrong closer: this part is not JSON, look for the next one
            stack.clear()
    found.unclosed, found.open_at = bool(stack), start
    _describe_prose(text, found, start if stack else len(text))
    return found


def _string_end(text: str, position: int) -> int:
    while sign := _QUOTED_SIGNS.search(text, position):
        position = sign.end()
        if sign.group() == '"':
            return position
    return len(text)


def _describe_prose(text: str, found: Documents, end: int) -> None:
    pieces, position = [], 0
    for start, stop in found.spans:
        pieces.append(text[position:start])
        position = stop
    pieces.append(text[position : max(position, end)])
    outside = " ".join(pieces)
    found.fenced = "```" in outside
    found.prose = _FENCE.sub(" ", outside).strip()
