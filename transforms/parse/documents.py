"""Strict JSON first, then the least repair that makes it JSON; every repair leaves a flag."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TypeAlias

JsonValue: TypeAlias = "bool | float | str | list[JsonValue] | dict[str, JsonValue] | None"

HUGE = 1e300
"""Stands for a number too large for a float: finite, and outside every frame."""

_MAX_DIGITS = 309
"""More digits than this overflow a float; Python's own limit on integer text is higher."""

_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


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


def _candidates(text: str) -> list[tuple[str, frozenset[str]]]:
    repaired = _TRAILING_COMMA.sub(lambda found: found.group(1) or "", text)
    if repaired == text:
        return [(text, frozenset())]
    return [(text, frozenset()), (repaired, frozenset({"trailing_comma"}))]


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
        value: JsonValue = json.loads(
            text,
            strict=strict,
            object_pairs_hook=self._pairs,
            parse_constant=_refuse,
            parse_int=_number,
            parse_float=_number,
        )
        return value

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


def _number(text: str) -> float:
    if len(text) > 4 * _MAX_DIGITS:
        return math.copysign(HUGE, -1.0 if text.startswith("-") else 1.0)
    value = float(text)
    return value if abs(value) < HUGE else math.copysign(HUGE, value)
