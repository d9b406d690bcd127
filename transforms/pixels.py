"""Pixel modes to RGB, and EXIF orientation: what a person would see in a viewer."""

from __future__ import annotations

import struct

import numpy as np
from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected

_ORIENTATION_TAG = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF 2.3, tag 0x0112: what undoes each orientation."""

_EXIF_ERRORS = (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, IndexError)
_DIRECT_MODES = frozenset({"1", "L", "P", "RGB", "RGBX", "YCbCr", "HSV"})
_WHITE = (255, 255, 255, 255)


def exif_orientation(image: Image.Image, flags: set[str]) -> int:
    """The EXIF orientation of an opened image, 1..8; 1 where there is none or a senseless one.

    Args:
        image: opened; a PNG is loaded, since its EXIF may come after the pixels.
        flags: `exif_unreadable` is added where the tags are damaged.
    """
    if image.format == "PNG":
        image.load()
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except (*_EXIF_ERRORS, struct.error):
        flags.add("exif_unreadable")
        return 1
    return int(value) if value in _TURNS else 1


def turned(image: Image.Image, orientation: int) -> Image.Image:
    """`image` as it is meant to be seen, given its EXIF orientation."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def to_rgb(image: Image.Image, flags: set[str]) -> Image.Image:
    """RGB as a viewer on a white page shows it.

    Args:
        image: loaded.
        flags: `alpha_composited`, `depth_reduced`, `cmyk_converted` and `cmyk_without_marker`
            are added where they apply.

    Raises:
        MemberRejected: IMAGE_UNSUPPORTED for modes without a stated range (32-bit, float, Lab).
    """
    if image.mode.startswith("I;16"):
        flags.add("depth_reduced")
        return _reduced(image).convert("RGB")
    if image.has_transparency_data:
        return _on_white(image, flags)
    if image.mode == "CMYK":
        flags.add("cmyk_converted")
        if image.format == "JPEG" and "adobe" not in image.info:
            flags.add("cmyk_without_marker")
        return image.convert("RGB")
    if image.mode not in _DIRECT_MODES:
        raise MemberRejected(RejectReason.IMAGE_UNSUPPORTED, f"pixel mode {image.mode}")
    if _is_deep(image):
        flags.add("depth_reduced")
    return image.convert("RGB")


def _reduced(image: Image.Image) -> Image.Image:
    """16-bit grey to 8 bits by rounding `value / 257`; Pillow's own conversion clips at 255."""
    values = np.asarray(image).astype(np.float64)
    return Image.fromarray(np.rint(values / 257).astype(np.uint8))


def _on_white(image: Image.Image, flags: set[str]) -> Image.Image:
    if _is_deep(image):
        flags.add("depth_reduced")
    layer = image.convert("RGBA")
    lowest, _ = layer.getchannel("A").getextrema()
    if lowest == 255:
        return layer.convert("RGB")
    flags.add("alpha_composited")
    page = Image.new("RGBA", layer.size, _WHITE)
    return Image.alpha_composite(page, layer).convert("RGB")


def _is_deep(image: Image.Image) -> bool:
    """Whether Pillow dropped the lower 8 of 16 bits while loading (TIFF, tag 258)."""
    bits = getattr(image, "tag_v2", {}).get(258, (8,))
    return any(bit > 8 for bit in (bits if isinstance(bits, tuple) else (bits,)))
