"""Whether a PNG holds every row that its header announces.

A compressed stream that ends early, and properly, leaves Pillow's remaining rows zero without a
word: an encoder that was stopped, or a header that was edited.
"""

from __future__ import annotations

import struct
import zlib

from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from transforms.image_integrity import png_chunks

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples a pixel by colour type (PNG specification, section 11.2.2)."""

_PASSES = (
    (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)
)  # fmt: skip
"""Adam7: first column, first row, column step, row step of each pass (section 8.2)."""

_PIECE = 2**20


def check_rows(image: Image.Image, data: bytes) -> None:
    """Refuse a PNG whose pixels end before its last row.

    The stream is inflated once more only where the last row is zero throughout, as missing rows
    are, and for interlaced files.

    Args:
        image: loaded.
        data: the file.

    Raises:
        MemberRejected: IMAGE_TRUNCATED.
    """
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    last = image.crop((0, image.height - 1, image.width, image.height))
    if not interlaced and last.getbbox(alpha_only=False) is not None:
        return
    bits = depth * _SAMPLES[colour]
    wanted = _interlaced_bytes(width, height, bits) if interlaced else _bytes(width, height, bits)
    found = _inflated(data, wanted)
    if found < wanted:
        detail = f"PNG: pixels end after {found} of {wanted} bytes; rows are missing"
        raise MemberRejected(RejectReason.IMAGE_TRUNCATED, detail)


def _bytes(width: int, height: int, bits: int) -> int:
    """Bytes of filtered rows; each starts with its filter type."""
    return height * (1 + (width * bits + 7) // 8) if width and height else 0


def _interlaced_bytes(width: int, height: int, bits: int) -> int:
    return sum(
        _bytes(-(-max(0, width - x) // dx), -(-max(0, height - y) // dy), bits)
        for x, y, dx, dy in _PASSES
    )


def _inflated(data: bytes, wanted: int) -> int:
    """Bytes in the pixel stream, counted up to `wanted`."""
    stream = zlib.decompressobj()
    found = 0
    for name, start, end in png_chunks(data):
        piece = data[start + 8 : end - 4] if name == b"IDAT" else b""
        while piece and found < wanted and not stream.eof:
            found += len(stream.decompress(piece, _PIECE))
            piece = stream.unconsumed_tail
    return found
