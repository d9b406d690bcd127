"""Whether an image file is whole, told by its own structure before any pixel is decoded.

Pillow alone is not enough: it accepts a PNG without its end or with wrong checksums, a JPEG without
its end mark, and fills what is missing.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator

from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected

_PNG_SIGNATURE = 8
_TEXT_CHUNKS = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
"""In the coded data of a JPEG, the next marker that is neither stuffing, fill nor restart."""

_ZERO_TAIL = 512

_OFFSETS_AND_SIZES = ((273, 279), (324, 325))
"""TIFF 6.0: where the strips, or the tiles, of a page lie, and how long each is."""


def check_whole(kind: str, data: bytes) -> None:
    """Refuse a file whose own structure says that it goes on after its last byte.

    Bytes after the end of the image are allowed. TIFF has no end mark: see `check_tiff`.

    Raises:
        MemberRejected: IMAGE_TRUNCATED, or IMAGE_CORRUPT for a PNG with a wrong checksum.
    """
    checks: dict[str, Callable[[bytes], None]] = {
        "AVIF": _check_boxes,
        "BMP": _check_bmp,
        "GIF": _check_gif,
        "JPEG": _check_jpeg,
        "PNG": _check_png,
        "WEBP": _check_webp,
    }
    if kind in checks:
        checks[kind](data)


def check_tiff(image: Image.Image, data: bytes) -> None:
    """Refuse a TIFF whose first page has strips or tiles beyond the end of the file.

    Args:
        image: the opened file.
        data: its bytes.

    Raises:
        MemberRejected: IMAGE_TRUNCATED.
    """
    tags = getattr(image, "tag_v2", {})
    for offsets, sizes in _OFFSETS_AND_SIZES:
        starts, lengths = _whole_numbers(tags.get(offsets)), _whole_numbers(tags.get(sizes))
        ends = [start + length for start, length in zip(starts, lengths, strict=False)]
        if ends and max(ends) > len(data):
            raise _cut("TIFF", data, f"pixels reach to byte {max(ends)}")


def _whole_numbers(value: object) -> list[int]:
    values = value if isinstance(value, tuple) else (value,)
    return [v for v in values if isinstance(v, int)]


def png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and end of each whole chunk (PNG specification, section 5.3), IEND last."""
    position = _PNG_SIGNATURE
    while position + 12 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if end > len(data):
            return
        yield name, position, end
        if name == b"IEND":
            return
        position = end


def without_png_text(data: bytes) -> bytes:
    """The PNG without its text chunks: none of them is used, and they can inflate to anything."""
    chunks = list(png_chunks(data))
    if not any(name in _TEXT_CHUNKS for name, _, _ in chunks):
        return data
    kept = [data[start:end] for name, start, end in chunks if name not in _TEXT_CHUNKS]
    return data[:_PNG_SIGNATURE] + b"".join(kept)


def _check_png(data: bytes) -> None:
    name = b""
    view = memoryview(data)
    for name, start, end in png_chunks(data):
        critical = name[:1].isupper()
        if critical and zlib.crc32(view[start + 4 : end - 4]) != int.from_bytes(
            view[end - 4 : end], "big"
        ):
            detail = f"PNG: wrong checksum of chunk {name!r} at byte {start}"
            raise MemberRejected(RejectReason.IMAGE_CORRUPT, detail)
    if name != b"IEND":
        raise _cut("PNG", data, "no IEND chunk")


def _check_jpeg(data: bytes) -> None:
    """Walk the segments to EOI; the EOI of a thumbnail inside a segment is not taken for it."""
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            return  # damaged: the decoder says what is wrong
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
    _check_tail("WEBP", data)


def _check_gif(data: bytes) -> None:
    """Walk the blocks to the trailer (GIF89a, appendix A); what comes after it does not matter."""
    position = 13 + _colour_table(data, 10)
    while position < len(data):
        block = data[position]
        if block == 0x3B:
            return
        if block == 0x2C:
            position = _after_sub_blocks(data, position + 11 + _colour_table(data, position + 9))
        elif block == 0x21:
            position = _after_sub_blocks(data, position + 2)
        else:
            position += 1  # fill between blocks, as decoders take it
    raise _cut("GIF", data, "no trailer")


def _colour_table(data: bytes, flags_at: int) -> int:
    """Bytes of the colour table that the packed field at `flags_at` announces."""
    flags = data[flags_at] if flags_at < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_sub_blocks(data: bytes, position: int) -> int:
    while position < len(data) and data[position]:
        position += 1 + data[position]
    return position + 1


def _check_bmp(data: bytes) -> None:
    """Some writers leave the size field 0; then Pillow alone decides."""
    if len(data) < 6 or len(data) < int.from_bytes(data[2:6], "little"):
        raise _cut("BMP", data, "shorter than its header says")


def _check_boxes(data: bytes) -> None:
    """Walk the outermost boxes of an AVIF (ISO/IEC 14496-12, 4.2)."""
    position = 0
    while position + 8 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        if size == 1:
            size = int.from_bytes(data[position + 8 : position + 16], "big")
        if size < 8:
            return  # 0 = up to the end of the file; less is damage, which the decoder names
        position += size
    if position > len(data):
        raise _cut("AVIF", data, f"a box reaches to byte {position}")
    _check_tail("AVIF", data)


def _check_tail(kind: str, data: bytes) -> None:
    """Coded pixels never end in so many zeros; a file that was made large first and filled does.

    The decoders of these formats read zeros as pixels, without a word.
    """
    if len(data) > 2 * _ZERO_TAIL and not any(data[-_ZERO_TAIL:]):
        raise _cut(kind, data, f"the last {_ZERO_TAIL} are zero and were never written")


def _cut(kind: str, data: bytes, why: str) -> MemberRejected:
    return MemberRejected(RejectReason.IMAGE_TRUNCATED, f"{kind}: {why} in {len(data)} bytes")
