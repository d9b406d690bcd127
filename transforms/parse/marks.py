"""Coordinates written as text: `(x, y)`, `[x1, y1, x2, y2]`, `<point>x y</point>` and their kin.

One pass finds every bracketed or tagged group of numbers. What stands around the groups is kept
as a skeleton, in which each group is one `HOLE`, so that a format can say which surroundings it
expects. All patterns use possessive repeats: no text makes them backtrack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from transforms.parse.documents import finite
from transforms.parse.places import read_number

HOLE = "\x00"
"""Stands for one group in a skeleton; a NUL of the answer itself is replaced first."""

MAX_NUMBERS = 16
"""More numbers than this in one group are no coordinates."""

# Only single signs are possessive, never groups: in a group that fails half-way, Python before
# 3.11.5 loses its place. Nothing is given back all the same: what would be left fits nowhere.
_NUMBER = r"-?+[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_NAMED = rf"(?:[xyXY][12]?+\s*+[=:]\s*+)?{_NUMBER}"
_SEPARATOR = r"(?:\s*+[,;]\s*+|\s++)"
_CONTENT = rf"{_NAMED}(?:{_SEPARATOR}{_NAMED}){{1,{MAX_NUMBERS - 1}}}"
_TAGS = "point|points|box|bbox"
_GROUP = re.compile(
    rf"(?:[(\[]|<(?:{_TAGS})>)\s*+({_CONTENT})\s*+(?:[)\]]|</(?:{_TAGS})>)", re.IGNORECASE
)
_BARE = re.compile(_CONTENT)
_PART = re.compile(rf"(?:([xyXY][12]?+)\s*+[=:]\s*+)?({_NUMBER})")
_JOINT = re.compile(r"\s*+,?+\s*+")
_OPEN = re.compile(rf"(?:[(\[<]|<(?:{_TAGS})>|<\|box_start\|>)[^()\[\]<>]*+\Z")
_NAMES = {2: ["x", "y"], 4: ["x1", "y1", "x2", "y2"]}
_INTEGER = re.compile(r"-?+[0-9]++")


@dataclass(frozen=True, slots=True)
class Mark:
    """One group of numbers.

    Attributes:
        numbers: as they were written, or None where they have no one reading.
        start: where the group begins in the text; `end` likewise.
        joined: whether only a comma or blanks stand between it and the group before.
    """

    numbers: tuple[float, ...] | None
    start: int
    end: int
    joined: bool = False
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Marks:
    """All groups of a text.

    Attributes:
        skeleton: the text with `HOLE` for each group.
        open_end: whether the text ends inside a bracket or tag.
    """

    found: tuple[Mark, ...]
    skeleton: str
    open_end: bool


def find_marks(text: str) -> Marks:
    """Every group of numbers in `text`; without any, a text that is nothing but numbers is one."""
    text = text.replace(HOLE, "\ufffd")
    matches = list(_GROUP.finditer(text))
    if not matches:
        bare = _BARE.fullmatch(text)
        if bare is None:
            return Marks((), text, _is_open(text))
        mark = _mark(text, 0, len(text), joined=False)
        whole = Mark(mark.numbers, 0, len(text), flags=mark.flags | {"bare_numbers"})
        return Marks((whole,), HOLE, open_end=False)
    found: list[Mark] = []
    pieces: list[str] = []
    position = 0
    for match in matches:
        between = text[position : match.start()]
        joined = bool(found) and _JOINT.fullmatch(between) is not None
        found.append(_mark(match.group(1), match.start(), match.end(), joined=joined))
        pieces.append(between)
        position = match.end()
    rest = text[position:]
    return Marks(tuple(found), HOLE.join([*pieces, rest]), _is_open(rest))


def _is_open(text: str) -> bool:
    """Whether the text ends inside a bracket, or after a tag that opens and has no end."""
    last = max(text.rfind(sign) for sign in "([<") if text else -1
    return last >= 0 and _OPEN.match(text, last) is not None


def _mark(content: str, start: int, end: int, *, joined: bool) -> Mark:
    numbers, flags = read_group(content)
    return Mark(numbers, start, end, joined, flags)


def read_group(content: str) -> tuple[tuple[float, ...] | None, frozenset[str]]:
    """The numbers between two brackets, or None with a flag where they could be read in two ways.

    Decimal commas are read only where semicolons separate the numbers. `0,53, 0,21`, whose commas
    are tight and loose in turn, could be four integers or two decimals and is not read.
    """
    if ";" in content:
        return _semicolons(content)
    parts = list(_PART.finditer(content))
    names = [part.group(1).lower() for part in parts if part.group(1)]
    values = [finite(part.group(2)) for part in parts]
    if names:
        return _by_name(names, values)
    gaps = [content[a.end() : b.start()] for a, b in pairwise(parts)]
    if _alternates(gaps) and all(_INTEGER.fullmatch(part.group(2)) for part in parts):
        return None, frozenset({"ambiguous_decimal"})
    return tuple(values), frozenset()


def _alternates(gaps: list[str]) -> bool:
    tight, loose = gaps[0::2], gaps[1::2]
    return bool(loose) and all(g == "," for g in tight) and all(g != "," for g in loose)


def _by_name(
    names: list[str], values: list[float]
) -> tuple[tuple[float, ...] | None, frozenset[str]]:
    wanted = _NAMES.get(len(values))
    if wanted is None or sorted(names) != sorted(wanted):
        return None, frozenset({"named_numbers"})
    by_name = dict(zip(names, values, strict=True))
    return tuple(by_name[name] for name in wanted), frozenset({"named_numbers"})


def _semicolons(content: str) -> tuple[tuple[float, ...] | None, frozenset[str]]:
    numbers: list[float] = []
    flags: frozenset[str] = frozenset({"semicolons"})
    for part in content.split(";"):
        number, noticed = read_number(part)
        flags |= noticed - {"number_as_text"}
        if number is None:
            return None, flags
        numbers.append(number)
    return tuple(numbers), flags
