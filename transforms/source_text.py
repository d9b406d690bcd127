"""Text that people and programs wrote: bytes to clean Unicode, with what was noticed on the way."""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Iterable

_TOKEN_LIKE = re.compile(
    r"[<＜](?P<angle>[|｜][^<>＜＞\n]{0,80}[|｜]|/?[^\W\d][\w.\-]{0,40}(?:[ =]\d{1,4})?/?"
    r"|0x[0-9A-Fa-f]{2})[>＞]"
    r"|\[(?P<square>/?(?:INST|IMG|IMG_BREAK|IMG_END|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS"
    r"|TOOL_RESULTS|TOOL_CONTENT|PREFIX|MIDDLE|SUFFIX|BOS|EOS|PAD|UNK|CLS|SEP|[gs]?MASK|THINK))\]"
)
"""Text that a tokenizer may take for a token of its own: `<|im_end|>`, `<image>`, `</s>`,
`<start_of_turn>`, `<SPECIAL_12>`, `[INST]`. HTML tags look the same, and are treated the same."""

_ENCODINGS = {
    "encoding_utf16": "utf-16",
    "encoding_utf32": "utf-32",
    "encoding_cp1252": "windows-1252",
    "encoding_latin1": "iso-8859-1",
}

MAX_DEPTH = 64
"""Deepest nesting that is read: a sidecar needs five levels, and what is read can then be written
again without running into the interpreter's own limit."""


def decode_text(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Text of a file, and flags for anything but plain UTF-8.

    UTF-8, then a byte order mark (UTF-8, UTF-16, UTF-32) or the zeros that UTF-16 has between
    letters, then Windows-1252, then Latin-1, which reads any bytes: what Spanish spreadsheets and
    older tools write.

    Returns:
        The text and a subset of `encoding_bom`, `encoding_utf16`, `encoding_utf32`,
        `encoding_cp1252`, `encoding_latin1`; `encoding_name` names it.
    """
    if data.startswith(codecs.BOM_UTF8):
        rest = data[len(codecs.BOM_UTF8) :]
        try:
            return rest.decode(), ("encoding_bom",)  # zeros in it are its own
        except UnicodeDecodeError:
            text, flags = decode_text(rest)
        return text, ("encoding_bom", *flags)
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return data.decode("utf-32", "replace"), ("encoding_utf32",)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace"), ("encoding_utf16",)
    if len(data) >= 4 and data[0] != data[1] and 0 in data[:2]:
        order = "utf-16-le" if data[1] == 0 else "utf-16-be"
        return data.decode(order, "replace"), ("encoding_utf16",)
    for encoding, flag in (("utf-8", ""), ("cp1252", "encoding_cp1252")):
        try:
            return data.decode(encoding), (flag,) if flag else ()
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), ("encoding_latin1",)


def encoding_name(flags: Iterable[str]) -> str:
    """The name of the encoding that `decode_text` found, as its flags say."""
    named = [_ENCODINGS[flag] for flag in flags if flag in _ENCODINGS]
    return named[0] if named else "utf-8-sig" if "encoding_bom" in flags else "utf-8"


def load_json(text: str) -> object:
    """The value of a JSON text.

    Raises:
        ValueError: if it is not JSON, nests too deep to read, or says two things under one key:
            readers of JSON differ in which of them they take (RFC 8259, section 4).
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_without_contradiction)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if _is_too_deep(value):
        raise ValueError(f"nested too deep, over {MAX_DEPTH} levels")
    return value


def _without_contradiction(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for key, value in pairs:
            if value != fields[key]:
                raise ValueError(f"the key `{clean(key)}` stands twice in one object; keep one")
    return fields


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        lists = [item for item in level if isinstance(item, list)]
        lists += [list(item.values()) for item in level if isinstance(item, dict)]
        level = [item for items in lists for item in items]
    return bool(level)


def clean(text: str) -> str:
    """`text` without lone surrogates, which no file format can hold: each becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def composed(text: str) -> str:
    """`text` in NFC, without lone surrogates."""
    return unicodedata.normalize("NFC", clean(text))


def instruction(text: str) -> tuple[str, str | None]:
    """An instruction in NFC without outer blanks, and the text as given where that differs.

    Letters are never folded: `año` and `ano` stay two words. What a tokenizer may take for a token
    of its own is put in other brackets (`<|im_end|>` becomes `‹|im_end|›`), so that no instruction
    can end the turn it stands in or stand for an image. NUL, which PostgreSQL and with it Label
    Studio cannot hold, becomes U+FFFD.
    """
    given = clean(text)
    plain = unicodedata.normalize("NFC", given).replace("\0", "\ufffd")
    tidy = _TOKEN_LIKE.sub(_other_brackets, plain).strip()
    return tidy, given if given != tidy else None


def holds_tokens(text: str) -> bool:
    """Whether a text holds what a tokenizer may take for a token of its own."""
    return _TOKEN_LIKE.search(text) is not None


def _other_brackets(found: re.Match[str]) -> str:
    angle = found["angle"]
    return f"({found['square']})" if angle is None else f"‹{angle}›"


def is_mojibake(text: str) -> bool:
    """Whether `text` looks like UTF-8 that was read in another encoding (`MUÃ‘OZ` for `MUÑOZ`).

    It is only told, never repaired: what looks broken may be meant.
    """
    if text.isascii():
        return False
    from ftfy import fix_encoding

    return fix_encoding(text) != text
