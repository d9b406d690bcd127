"""Image files before decoding: which format they are, and whether they are whole.

Pillow alone is not enough for the second: it accepts a PNG without its end, with wrong checksums,
and a JPEG without its end mark.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from typing import BinaryIO

from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected

_PNG = b"\x89PNG\r\n\x1a\n"
_SIGNATURES = {
    _PNG: "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
}
_BRANDS = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIF", b"avif": "AVIF", b"avis": "AVIF"}
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
"""In the coded data of a JPEG, the next marker that is neither stuffing, fill nor restart."""


def image_format(data: bytes) -> str:
    """Format by the first bytes: PNG, JPEG, WEBP, GIF, BMP or TIFF.

    Raises:
        MemberRejected: IMAGE_EMPTY for no bytes, IMAGE_TRUNCATED for less than a signature,
            IMAGE_UNSUPPORTED for everything else, naming what it is where that is known.
    """
    if not data:
        raise MemberRejected(RejectReason.IMAGE_EMPTY, "0 bytes")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    for signature, name in _SIGNATURES.items():
        if data.startswith(signature):
            return name
    starts = [*_SIGNATURES, b"RIFF"]
    if any(start.startswith(data) for start in starts) or (
        data[:4] == b"RIFF" and len(data) < 12 and b"WEBP".startswith(data[8:])
    ):
        raise MemberRejected(RejectReason.IMAGE_TRUNCATED, f"only {len(data)} bytes")
    raise MemberRejected(RejectReason.IMAGE_UNSUPPORTED, _what(data))


def open_image(kind: str, file: BinaryIO) -> Image.Image:
    """Read the header of a file of format `kind`; no pixel is decoded.

    The plugin is called itself and not through `Image.open`, whose pixel limit is global to the
    process; the caller's limit applies instead. A two-picture MPO is read as the JPEG it starts
    with.
    """
    from PIL import (
        BmpImagePlugin,
        GifImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        TiffImagePlugin,
        WebPImagePlugin,
    )

    openers: dict[str, Callable[[BinaryIO], Image.Image]] = {
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": JpegImagePlugin.JpegImageFile,
        "WEBP": WebPImagePlugin.WebPImageFile,
        "GIF": GifImagePlugin.GifImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
        "TIFF": TiffImagePlugin.TiffImageFile,
    }
    return openers[kind](file)


def check_whole(kind: str, data: bytes) -> None:
    """Refuse a file whose own structure says that it goes on after its last byte.

    Bytes after the end of the image are allowed. TIFF has no end mark; Pillow notices its cuts.

    Raises:
        MemberRejected: IMAGE_TRUNCATED, or IMAGE_CORRUPT for a PNG with a wrong checksum.
    """
    checks = {
        "PNG": _check_png,
        "JPEG": _check_jpeg,
        "WEBP": _check_webp,
        "GIF": _check_gif,
        "BMP": _check_bmp,
    }
    if kind in checks:
        checks[kind](data)


def _check_png(data: bytes) -> None:
    """Walk the chunks to IEND (PNG specification, section 5.3)."""
    position = len(_PNG)
    while position + 12 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if end > len(data):
            break
        critical = name[:1].isupper()
        crc = zlib.crc32(memoryview(data)[position + 4 : end - 4])
        if critical and crc != struct.unpack_from(">I", data, end - 4)[0]:
            detail = f"PNG: wrong checksum of chunk {name!r} at byte {position}"
            raise MemberRejected(RejectReason.IMAGE_CORRUPT, detail)
        if name == b"IEND":
            return
        position = end
    raise _cut("PNG", data, "no IEND chunk")


def _check_jpeg(data: bytes) -> None:
    """Walk the segments to EOI; the EOI of a thumbnail inside a segment is not taken for it."""
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return  # damaged: Pillow says what is wrong
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker == 0xD9:
            return
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        if marker == 0xDA:
            found = _MARKER.search(data, position)
            position = found.start() if found else len(data)
    if data[position : position + 2] != b"\xff\xd9":
        raise _cut("JPEG", data, "no end mark")


def _check_webp(data: bytes) -> None:
    """The RIFF header holds the size of what follows its first 8 bytes."""
    if len(data) < 12 or len(data) < 8 + int.from_bytes(data[4:8], "little"):
        raise _cut("WEBP", data, "shorter than its RIFF header says")


def _check_gif(data: bytes) -> None:
    if not data.rstrip(b"\x00").endswith(b";"):
        raise _cut("GIF", data, "no trailer")


def _check_bmp(data: bytes) -> None:
    """Some writers leave the size field 0; then Pillow alone decides."""
    if len(data) < 6 or len(data) < int.from_bytes(data[2:6], "little"):
        raise _cut("BMP", data, "shorter than its header says")


def _cut(kind: str, data: bytes, why: str) -> MemberRejected:
    return MemberRejected(RejectReason.IMAGE_TRUNCATED, f"{kind}: {why} in {len(data)} bytes")


def _what(data: bytes) -> str:
    """What bytes that are no supported image seem to be, for a person."""
    brand = _BRANDS.get(data[8:12]) if data[4:8] == b"ftyp" else None
    text = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if brand:
        return f"{brand} is not supported; convert it to PNG or JPEG"
    if b"<svg" in text:
        return "SVG drawing, not a screenshot"
    if text.startswith((b"<!doctype html", b"<html")):
        return "an HTML page, perhaps an error page saved as an image"
    if text.startswith((b"{", b"<", b"http")):
        return "text, not an image"
    return f"unknown format, starts with {data[:8].hex(' ')}"
