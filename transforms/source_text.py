"""Text that people and programs wrote: bytes to clean Unicode, with what was noticed on the way."""

from __future__ import annotations

import codecs
import json
import unicodedata

_MOJIBAKE_MARKS = ("Ã", "Â", "â€")


def decode_text(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Text of a file, and flags for anything but plain UTF-8.

    UTF-8, then a byte order mark (UTF-8 or UTF-16), then Windows-1252, then Latin-1, which reads
    any bytes: what Spanish spreadsheets and older tools write.

    Returns:
        The text and a subset of `encoding_bom`, `encoding_utf16`, `encoding_cp1252`,
        `encoding_latin1`.
    """
    if data.startswith(codecs.BOM_UTF8):
        text, flags = decode_text(data[len(codecs.BOM_UTF8) :])
        return text, ("encoding_bom", *flags)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace"), ("encoding_utf16",)
    for encoding, flag in (("utf-8", ""), ("cp1252", "encoding_cp1252")):
        try:
            return data.decode(encoding), (flag,) if flag else ()
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), ("encoding_latin1",)


def load_json(text: str) -> object:
    """The value of a JSON text.

    Raises:
        ValueError: if it is not JSON, or nests too deep to read.
    """
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return value


def clean(text: str) -> str:
    """`text` without lone surrogates, which no file format can hold: each becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def instruction(text: str) -> tuple[str, str | None]:
    """An instruction in NFC without outer blanks, and the text as given where that differs.

    Letters are never folded: `año` and `ano` stay two words.
    """
    given = clean(text)
    tidy = unicodedata.normalize("NFC", given).strip()
    return tidy, given if given != tidy else None


def is_mojibake(text: str) -> bool:
    """Whether `text` looks like UTF-8 that was read as Windows-1252 (`MUÃ‘OZ` for `MUÑOZ`)."""
    if not any(mark in text for mark in _MOJIBAKE_MARKS):
        return False
    try:
        text.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return False
    return True
