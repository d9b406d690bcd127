"""Lines of a queries file, JSON Lines or CSV, checked one by one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schemas.errors import ConfigError
from schemas.geometry import Box
from transforms.sidecar_boxes import numbers
from transforms.source_text import clean, decode_text, instruction, load_json

_NUMBER = r"-?\d+(?:\.\d+)?"
_BOX_TEXT = re.compile(rf"\[?\s*({_NUMBER}(?:(?:\s*,\s*|\s*;\s*|\s+){_NUMBER}){{3}})\s*\]?")


@dataclass(frozen=True, slots=True)
class Line:
    """One question of a queries file.

    Attributes:
        number: line in the file, from 1; of a CSV record over several lines, the last one.
        member: name of the screen, as given.
        shard: URI or base name of the shard, or None for any.
        instruction_raw: the instruction as given, where it is not NFC or has outer blanks.
        box: the true box in original upright pixels, or None.
    """

    number: int
    member: str
    shard: str | None
    instruction: str
    instruction_raw: str | None
    box: Box | None


def read_lines(uri: str, data: bytes) -> tuple[Line, ...]:
    """Every entry of the file; blank lines are skipped.

    Raises:
        ConfigError: at the first bad line, naming the file, the line and what is wrong.
    """
    text, _ = decode_text(data)
    records = _csv_records(uri, text) if uri.lower().endswith(".csv") else _json_records(uri, text)
    lines = tuple(_line(uri, number, fields) for number, fields in records)
    if not lines:
        raise ConfigError(f"{uri}: holds no queries")
    return lines


def _json_records(uri: str, text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = load_json(line)
        except ValueError as error:
            raise _bad(uri, number, str(error)) from error
        if not isinstance(fields, dict):
            raise _bad(uri, number, "a JSON object is expected")
        yield number, fields


def _csv_records(uri: str, text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Records of a CSV separated by comma, semicolon or tab, whichever its header holds most."""
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for record in reader:
            if None in record:
                raise _bad(uri, reader.line_num, "more fields than the header has")
            yield reader.line_num, {k.strip(): v for k, v in record.items() if v}
    except csv.Error as error:
        raise _bad(uri, reader.line_num, f"not CSV: {error}") from error


def _line(uri: str, number: int, fields: Mapping[str, object]) -> Line:
    member, text, shard = (fields.get(name) for name in ("member", "instruction", "shard"))
    for name, value in (("member", member), ("instruction", text)):
        if value is None:
            there = ", ".join(fields) or "none"
            raise _bad(uri, number, f"no `{name}`; fields there: {there}")
        if not isinstance(value, str) or not value.strip():
            raise _bad(uri, number, f"`{name}` must be a text, not {value!r}")
    if shard is not None and not isinstance(shard, str):
        raise _bad(uri, number, f"`shard` must be a text, not {shard!r}")
    tidy, raw = instruction(str(text))
    box = _box(uri, number, fields.get("bbox_px"))
    place = clean(shard) if shard else None
    return Line(number, clean(str(member)).strip(), place, tidy, raw, box)


def _box(uri: str, number: int, value: object) -> Box | None:
    if value is None:
        return None
    if isinstance(value, str):
        found = _BOX_TEXT.fullmatch(value.strip())
        value = [float(v) for v in re.findall(_NUMBER, found[1])] if found else value
    corners = numbers(value)
    if corners is None:
        raise _bad(uri, number, f"`bbox_px` must be four numbers x1, y1, x2, y2, not {value!r}")
    try:
        return Box(*corners)
    except ValueError as error:
        raise _bad(uri, number, f"`bbox_px`: {error}") from error


def _bad(uri: str, number: int, what: str) -> ConfigError:
    return ConfigError(f"{uri}, line {number}: {what}")
