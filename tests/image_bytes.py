"""Image files made byte by byte, for tests of what is taken and what is refused."""

import io
import struct
import zlib

import numpy as np
from PIL import Image


def encoded(image: Image.Image, image_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def noise(width: int = 40, height: int = 24) -> Image.Image:
    values = np.random.default_rng(7).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png_of(width: int, height: int, depth: int, color: int, rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    signature = b"\x89PNG\r\n\x1a\n"
    pixels = chunk(b"IDAT", zlib.compress(rows))
    return signature + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")
