"""Image bytes to upright RGB pixels, or a clear reason why not."""

from __future__ import annotations

import io
import itertools
import struct
import sys
import zlib
from dataclasses import dataclass

from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.geometry import Size
from transforms.image_files import frame_count, image_format, open_image
from transforms.image_integrity import check_tiff, check_whole, png_chunks, without_png_text
from transforms.jpeg import is_unsupported, load_jpeg
from transforms.pixels import WHITE, Colour, normalize, page_colour
from transforms.png_rows import check_rows

MIN_SIDE = 8
"""Sides below this hold no interface; a 1x1 image has stopped whole engines (vLLM issue 8954)."""

_PNG_DEPTH_AT = 24  # byte of the bit depth in IHDR, always the first chunk

PILLOW_ERRORS = (
    OSError,  # truncated data, decoder errors, UnidentifiedImageError
    SyntaxError,  # damaged headers, by Pillow's convention
    ValueError,  # limits of profiles, unknown modes
    RuntimeError,  # libavif
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
class ImageSettings:
    """Which image files are taken, checked before any pixel is decoded, and on what they are laid.

    Attributes:
        max_pixels: limit of width times height.
        max_side: limit of the longer side, pixels.
        max_aspect: limit of the longer side over the shorter one.
        max_bytes: limit of the file.
        max_png_chunks: limit of a PNG's chunks.
        background: page colour that is seen through transparent pixels, sRGB.
    """

    max_pixels: int = 200_000_000
    max_side: int = 65_535
    max_aspect: float = 200.0
    max_bytes: int = 2**28
    max_png_chunks: int = 100_000
    background: Colour = WHITE

    @classmethod
    def unlimited(cls, background: str = "#ffffff") -> ImageSettings:
        """Without limits: for images that were taken before."""
        most = sys.maxsize
        return cls(most, most, float(most), most, most, page_colour(background))


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """The pixels of one screenshot.

    Attributes:
        image: RGB, sRGB colours, upright: EXIF orientation is applied and gone.
        size: upright size, pixels.
        image_format: what the bytes are, whatever the name says: PNG, JPEG, WEBP, GIF, BMP, TIFF,
            AVIF.
        image_mode: Pillow's mode before conversion to RGB.
        orientation: EXIF orientation that was applied, 1 = none.
        frame_count: frames, pages or pictures in the file; the first is used.
        flags: what was noticed, sorted: those of `NormalImage`, and `first_frame_only`.
    """

    image: Image.Image
    size: Size
    image_format: str
    image_mode: str
    orientation: int
    frame_count: int
    flags: tuple[str, ...]


def decode_image(data: bytes, settings: ImageSettings) -> DecodedImage:
    """Decode one image file; the format is told by its bytes.

    The limits are checked before any pixel is decoded. A file that is cut at any byte, or whose
    pixels end early, is refused: no missing row is ever filled in. PNG checksums are checked. Safe
    to call from several threads.

    Args:
        data: the whole file.
        settings: limits, and the page colour.

    Raises:
        MemberRejected: IMAGE_EMPTY, IMAGE_UNSUPPORTED, IMAGE_TRUNCATED, IMAGE_CORRUPT,
            IMAGE_TOO_LARGE, IMAGE_TOO_SMALL or IMAGE_TOO_NARROW.
    """
    kind = image_format(data)
    _check_bytes(kind, data, len(data), settings)
    try:
        if kind == "PNG":
            check_whole(kind, data)  # before its text is left out: the checks look at every chunk
            data = without_png_text(data)
        with open_image(kind, io.BytesIO(data)) as image:
            _check_size(image, settings)
            check_whole(kind, data)
            if kind == "TIFF":
                check_tiff(image, data)
            return _decoded(image, kind, data, settings)
    except PILLOW_ERRORS as error:
        raise _rejected(kind, data, error) from error


def announced_size(head: bytes, byte_size: int, settings: ImageSettings) -> Size | None:
    """The size that an image file says it has, before any EXIF turn; no pixel is decoded.

    Args:
        head: the first bytes of the file.
        byte_size: of the whole file.
        settings: limits.

    Returns:
        Pixels, within the limits; None = `head` ends before its header does.

    Raises:
        MemberRejected: as `decode_image` refuses the file, as far as its header tells; the whole
            file may still be refused for what is behind it.
    """
    kind = image_format(head)
    _check_bytes(kind, head, byte_size, settings)
    is_cut = len(head) < byte_size
    if kind == "PNG" and not is_cut:
        head = without_png_text(head)
    try:
        with open_image(kind, io.BytesIO(head)) as image:
            _check_size(image, settings)
            return Size(*image.size)
    except PILLOW_ERRORS as error:
        if is_cut:
            return None
        raise _rejected(kind, head, error) from error


def _decoded(image: Image.Image, kind: str, data: bytes, settings: ImageSettings) -> DecodedImage:
    frames = frame_count(image)
    mode = image.mode
    source = load_jpeg(image, data) if kind == "JPEG" else image
    normal = normalize(source, settings.background, owned=True)
    if kind == "PNG":
        check_rows(image, data)
    flags = set(normal.flags)
    if frames > 1:
        flags.add("first_frame_only")
    if kind == "PNG" and data[_PNG_DEPTH_AT] == 16:
        flags.add("depth_reduced")
    return DecodedImage(
        image=normal.image,
        size=Size(*normal.image.size),
        image_format=kind,
        image_mode=mode,
        orientation=normal.orientation,
        frame_count=frames,
        flags=tuple(sorted(flags)),
    )


def _check_bytes(kind: str, data: bytes, byte_size: int, settings: ImageSettings) -> None:
    if byte_size > settings.max_bytes:
        detail = f"{kind} of {byte_size} bytes, input.max_bytes is {settings.max_bytes}"
        raise MemberRejected(RejectReason.IMAGE_TOO_LARGE, detail)
    most = settings.max_png_chunks
    if kind == "PNG" and next(itertools.islice(png_chunks(data), most, None), None) is not None:
        detail = f"PNG of more than {most} chunks (input.max_png_chunks)"
        raise MemberRejected(RejectReason.IMAGE_TOO_LARGE, detail)


def _check_size(image: Image.Image, settings: ImageSettings) -> None:
    """Refuse what the header announces; the limits hold whichever way the image is turned."""
    width, height = image.size
    short, long = min(width, height), max(width, height)
    if width * height > settings.max_pixels:
        pixels = f"{width * height} pixels, input.max_pixels is {settings.max_pixels}"
        raise MemberRejected(RejectReason.IMAGE_TOO_LARGE, f"{width}x{height} is {pixels}")
    if long > settings.max_side:
        detail = f"{width}x{height}, input.max_side is {settings.max_side}"
        raise MemberRejected(RejectReason.IMAGE_TOO_LARGE, detail)
    if short < MIN_SIDE:
        detail = f"{width}x{height}, sides must be at least {MIN_SIDE}"
        raise MemberRejected(RejectReason.IMAGE_TOO_SMALL, detail)
    if long > settings.max_aspect * short:
        detail = (
            f"{width}x{height}: one side is {long / short:.1f} times the other, "
            f"input.max_aspect is {settings.max_aspect:g}; cut the page into parts"
        )
        raise MemberRejected(RejectReason.IMAGE_TOO_NARROW, detail)


def _rejected(kind: str, data: bytes, error: BaseException) -> MemberRejected:
    """The verdict on a file Pillow could not read: cut, if its structure ends early."""
    check_whole(kind, data)
    detail = f"{kind}: {type(error).__name__}: {error}"
    if isinstance(error, Image.DecompressionBombError | MemoryError):
        return MemberRejected(RejectReason.IMAGE_TOO_LARGE, detail)
    # Pillow has no type of its own for this, only these two texts.
    if "truncated" in str(error).lower() or isinstance(error, EOFError):
        return MemberRejected(RejectReason.IMAGE_TRUNCATED, detail)
    if is_unsupported(str(error)):
        return MemberRejected(RejectReason.IMAGE_UNSUPPORTED, detail)
    return MemberRejected(RejectReason.IMAGE_CORRUPT, detail)
