"""Image bytes to upright RGB pixels, or a clear reason why not."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass

from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.geometry import Size
from transforms.image_files import check_whole, image_format, open_image
from transforms.pixels import exif_orientation, to_rgb, turned

MIN_SIDE = 8
"""Sides below this hold no interface; a 1x1 image has stopped whole engines (vLLM issue 8954)."""

_PNG_DEPTH_AT = 24  # byte of the bit depth in IHDR, always the first chunk

PILLOW_ERRORS = (
    OSError,  # truncated data, decoder errors, UnidentifiedImageError
    SyntaxError,  # damaged headers, by Pillow's convention
    ValueError,  # limits of text chunks, unknown modes
    EOFError,
    struct.error,
    zlib.error,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    Image.DecompressionBombError,
)
"""What Pillow's plugins raise on damaged files; they have no common base."""


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """The pixels of one screenshot.

    Attributes:
        image: RGB, upright: EXIF orientation is applied and gone.
        size: upright size, pixels.
        image_format: what the bytes are, whatever the name says: PNG, JPEG, WEBP, GIF, BMP, TIFF.
        image_mode: Pillow's mode before conversion to RGB.
        orientation: EXIF orientation that was applied, 1 = none.
        flags: what was noticed, sorted: `alpha_composited`, `depth_reduced`, `cmyk_converted`,
            `cmyk_without_marker`, `first_frame_only`, `exif_unreadable`.
    """

    image: Image.Image
    size: Size
    image_format: str
    image_mode: str
    orientation: int
    flags: tuple[str, ...]


def decode_image(data: bytes, max_pixels: int) -> DecodedImage:
    """Decode one image file; the format is told by its bytes.

    The header is checked before any pixel is decoded. A file that is cut at any byte is refused:
    no missing row is ever filled in. PNG checksums are checked. Safe to call from several threads.

    Args:
        data: the whole file.
        max_pixels: limit of width times height.

    Raises:
        MemberRejected: IMAGE_EMPTY, IMAGE_UNSUPPORTED, IMAGE_TRUNCATED, IMAGE_CORRUPT,
            IMAGE_TOO_LARGE or IMAGE_TOO_SMALL.
    """
    kind = image_format(data)
    try:
        with open_image(kind, io.BytesIO(data)) as image:
            _check_size(image, max_pixels)
            check_whole(kind, data)
            return _decoded(image, kind, data)
    except PILLOW_ERRORS as error:
        raise _rejected(kind, data, error) from error


def _decoded(image: Image.Image, kind: str, data: bytes) -> DecodedImage:
    flags: set[str] = set()
    if getattr(image, "is_animated", False):
        flags.add("first_frame_only")
    if kind == "PNG" and data[_PNG_DEPTH_AT] == 16:
        flags.add("depth_reduced")
    mode = image.mode
    orientation = exif_orientation(image, flags)
    image.load()
    rgb = to_rgb(image, flags)
    if kind != "TIFF":  # Pillow turns TIFFs itself while loading
        rgb = turned(rgb, orientation)
    size = Size(rgb.width, rgb.height)
    return DecodedImage(rgb, size, kind, mode, orientation, tuple(sorted(flags)))


def _check_size(image: Image.Image, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        detail = f"{width}x{height} is {width * height} pixels, limit {max_pixels}"
        raise MemberRejected(RejectReason.IMAGE_TOO_LARGE, detail)
    if min(width, height) < MIN_SIDE:
        detail = f"{width}x{height}, sides must be at least {MIN_SIDE}"
        raise MemberRejected(RejectReason.IMAGE_TOO_SMALL, detail)


def _rejected(kind: str, data: bytes, error: BaseException) -> MemberRejected:
    """The verdict on a file Pillow could not read: cut, if its structure ends early."""
    check_whole(kind, data)
    detail = f"{kind}: {type(error).__name__}: {error}"
    if isinstance(error, Image.DecompressionBombError | MemoryError):
        return MemberRejected(RejectReason.IMAGE_TOO_LARGE, detail)
    # Pillow has no type of its own for this, only these two texts.
    if "truncated" in str(error).lower() or isinstance(error, EOFError):
        return MemberRejected(RejectReason.IMAGE_TRUNCATED, detail)
    return MemberRejected(RejectReason.IMAGE_CORRUPT, detail)
