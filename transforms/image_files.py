"""Image files before decoding: their format, how they are opened, how many frames they have."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import BinaryIO

from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
}
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset(
    {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"mif1", b"msf1"}
)
_OTHERS = {
    b"%PDF": "a PDF document; export its pages as PNG",
    b"\x00\x00\x00\x0cJXL ": "JPEG XL is not supported; convert it to PNG or JPEG",
    b"\xff\x0a": "JPEG XL is not supported; convert it to PNG or JPEG",
    b"\x00\x00\x00\x0cjP  ": "JPEG 2000 is not supported; convert it to PNG or JPEG",
    b"8BPS": "a Photoshop document; export it as PNG",
    b"PK\x03\x04": "a zip archive, not an image",
    b"\x1f\x8b": "gzip-compressed data; decompress it first",
    b"\x00\x00\x01\x00": "an icon file (ICO), not a screenshot",
    b"version https://git-lfs": "a Git LFS pointer; fetch the file it stands for (git lfs pull)",
}
_MPF_IMAGES = 0xB001  # CIPA DC-007, 5.2.3: number of images
_FRAME_ERRORS = (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, struct.error)


def image_format(data: bytes) -> str:
    """Format by the first bytes: PNG, JPEG, WEBP, GIF, BMP, TIFF or AVIF.

    Raises:
        MemberRejected: IMAGE_EMPTY for no bytes, IMAGE_TRUNCATED for less than a signature,
            IMAGE_UNSUPPORTED for everything else, naming what it is where that is known.
    """
    if not data:
        raise MemberRejected(RejectReason.IMAGE_EMPTY, "0 bytes")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if _AVIF_BRANDS & _brands(data):
        return "AVIF"
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
        AvifImagePlugin,
        BmpImagePlugin,
        GifImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        TiffImagePlugin,
        WebPImagePlugin,
    )

    openers: dict[str, Callable[[BinaryIO], Image.Image]] = {
        "AVIF": AvifImagePlugin.AvifImageFile,
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": JpegImagePlugin.JpegImageFile,
        "WEBP": WebPImagePlugin.WebPImageFile,
        "GIF": GifImagePlugin.GifImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
        "TIFF": TiffImagePlugin.TiffImageFile,
    }
    return openers[kind](file)


def frame_count(image: Image.Image) -> int:
    """Frames of an animation, pages of a TIFF, pictures of a phone's MPO; 1 where none are told.

    Args:
        image: opened, not loaded yet: Pillow closes a file with its last frame.
    """
    try:
        if image.format == "JPEG":
            pictures = getattr(image, "_getmp", lambda: None)() or {}
            return max(1, int(pictures.get(_MPF_IMAGES, 1)))
        return max(1, int(getattr(image, "n_frames", 1)))
    except _FRAME_ERRORS:  # damage behind the first frame costs nothing
        return 1


def _brands(data: bytes) -> set[bytes]:
    """Major and compatible brands of an ISO base media file (ISO/IEC 14496-12, 4.3)."""
    if data[4:8] != b"ftyp":
        return set()
    end = min(int.from_bytes(data[:4], "big"), len(data), 256)
    return {data[8:12], *(data[at : at + 4] for at in range(16, end - 3, 4))}


def _what(data: bytes) -> str:
    """What bytes that are no supported image seem to be, for a person."""
    if _HEIC_BRANDS & _brands(data):
        # The packages that read it carry decoders under the (L)GPL, so none is bundled.
        return "HEIC is not supported; export it as JPEG or PNG (for example with heif-convert)"
    for start, known in _OTHERS.items():
        if data.startswith(start):
            return known
    text = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in text:
        return "SVG drawing, not a screenshot"
    if text.startswith((b"<!doctype html", b"<html")):
        return "an HTML page, perhaps an error page saved as an image"
    if text.startswith((b"data:image", b"ivborw0kggo", b"/9j/")):
        return "base64 text of an image; decode it to bytes first"
    if text.startswith((b"{", b"<", b"http")):
        return "text, not an image"
    if not any(data[:4096]):
        return "only zero bytes, as an interrupted copy leaves them"
    return f"unknown format, starts with {data[:8].hex(' ')}"
