"""Strict JSON first, then the least repair that makes it JSON; every repair leaves a flag."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

JsonValue: TypeAlias = "bool | float | str | list[JsonValue] | dict[str, JsonValue] | None"

HUGE = 1e300
"""Stands for a number too large for a float: finite, and outside every frame."""

_MAX_DIGITS = 309
"""More digits than this overflow a float; Python's own limit on integer text is higher."""

_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


_AFTER_COMMA = re.compile(r"[\s,]*+")


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON value of an answer, with what was repaired to read it.

    Attributes:
        conflict: whether some object gave one key two different values.
        non_finite: whether it held NaN or Infinity, which are not JSON.
    """

    value: JsonValue
    flags: frozenset[str] = frozenset()
    conflict: bool = False
    non_finite: bool = False


class _NonFiniteError(ValueError):
    """NaN or Infinity where JSON allows none."""


def read_document(text: str) -> Document | None:
    """The JSON value `text` holds, or None if the known repairs do not make it JSON.

    Numbers come back as floats; those beyond a float's range as plus or minus `HUGE`.
    """
    for candidate, flags in _candidates(text):
        reader = _Reader()
        try:
            value = reader.read(candidate)
        except _NonFiniteError:
            return Document(None, non_finite=True)
        except (ValueError, RecursionError):
            continue
        return Document(value, flags | reader.flags, reader.conflict)
    return None


def read_cut_list(text: str) -> Document | None:
    """The complete elements of a JSON list that ends in the middle, or None without any.

    Args:
        text: from the list's opening bracket to the end of the answer.
    """
    reader = _Reader()
    decoder = reader.decoder(strict=False)
    elements: list[JsonValue] = []
    position = 1
    while position < len(text):
        position = _AFTER_COMMA.match(text, position).end()  # type: ignore[union-attr] # may be empty
        try:
            element, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        elements.append(element)
    # A number or a word at the very end may be half of one; an object or a list is whole.
    whole: list[JsonValue] = [element for element in elements if isinstance(element, dict | list)]
    return Document(whole, reader.flags, reader.conflict) if whole else None


def read_strict(text: str) -> Document | None:
    """The JSON value that `text` is as it stands and whole, or None: no repair is tried."""
    reader = _Reader()
    try:
        value = reader.decoder(strict=True).decode(text)
    except (ValueError, RecursionError):
        return None
    return Document(value, reader.flags, reader.conflict)


def depth(value: JsonValue, limit: int) -> int:
    """How deep brackets nest in a value, counted no further than one beyond `limit`."""
    if limit < 0 or not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((depth(entry, limit - 1) for entry in inner), default=0)


def _candidates(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    yield text, frozenset()
    repaired = _TRAILING_COMMA.sub(lambda found: found.group(1) or "", text)
    if repaired != text:
        yield repaired, frozenset({"trailing_comma"})


class _Reader:
    """`json.loads` with hooks that notice what it would silently accept."""

    def __init__(self) -> None:
        self.flags: frozenset[str] = frozenset()
        self.conflict = False

    def read(self, text: str) -> JsonValue:
        try:
            return self._load(text, strict=True)
        except _NonFiniteError:
            raise
        except ValueError:
            value = self._load(text, strict=False)
        self.flags |= {"raw_control_character"}
        return value

    def _load(self, text: str, *, strict: bool) -> JsonValue:
        value: JsonValue = self.decoder(strict=strict).decode(text)
        return value

    def decoder(self, *, strict: bool) -> json.JSONDecoder:
        """A decoder that reports to this reader; not strict = raw control signs in strings."""
        return json.JSONDecoder(
            strict=strict,
            object_pairs_hook=self._pairs,
            parse_constant=_refuse,
            parse_int=finite,
            parse_float=finite,
        )

    def _pairs(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        result: dict[str, JsonValue] = {}
        for key, value in pairs:
            if key in result:
                self.flags |= {"duplicate_key"}
                self.conflict = self.conflict or result[key] != value
            result[key] = value
        return result


def _refuse(constant: str) -> float:
    raise _NonFiniteError(constant)


def finite(text: str) -> float:
    """A number's text as a float; beyond a float's range, plus or minus `HUGE`."""
    if len(text) > 4 * _MAX_DIGITS:
        return math.copysign(HUGE, -1.0 if text.startswith("-") else 1.0)
    value = float(text)
    return value if abs(value) < HUGE else math.copysign(HUGE, value)
