"""Any image to upright RGB: the one step that every picture takes on its way to the model.

File bytes and images that are in memory already take the same step, so that both give the same
pixels: what a person would see in a browser.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from transforms.colour import to_srgb

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
_NOT_FOLLOWED = ("XML:com.adobe.xmp", "xmp", "Raw profile type exif")
_DIRECT_MODES = frozenset({"1", "L", "P", "RGB", "RGBX", "YCbCr", "HSV"})
_GREY_MODES = frozenset({"1", "L", "LA"})

Colour = tuple[int, int, int]
WHITE: Colour = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class NormalImage:
    """An image as the model and the reviewer may see it.

    Attributes:
        image: RGB, sRGB colours, upright: EXIF orientation is applied and gone.
        mode: Pillow's mode before conversion.
        orientation: EXIF orientation that was applied, 1 = none.
        flags: what was noticed: `alpha_composited`, `alpha_ignored`, `depth_reduced`,
            `cmyk_converted`, `cmyk_without_marker`, `exif_unreadable`, `icc_converted`,
            `icc_ignored`.
    """

    image: Image.Image
    mode: str
    orientation: int
    flags: frozenset[str]


def normalize(
    image: Image.Image, background: Colour = WHITE, *, owned: bool = False
) -> NormalImage:
    """Upright RGB pixels of an image that is opened or in memory.

    An RGB image without orientation and profile comes back as it is.

    Args:
        image: any image of Pillow's; is loaded.
        background: page colour on which transparency is laid.
        owned: nobody else uses the image, so that its tags may be taken off itself, not a copy.

    Raises:
        MemberRejected: IMAGE_UNSUPPORTED for modes without a stated range (32-bit, float, Lab).
    """
    flags: set[str] = set()
    mode = image.mode
    orientation = exif_orientation(image, flags)
    image.load()
    rgb = to_rgb(image, flags, background)
    if image.format != "TIFF":  # Pillow turns TIFFs itself while loading
        rgb = turned(rgb, orientation)
    return NormalImage(_bare(rgb, image, owned=owned), mode, orientation, frozenset(flags))


def _bare(rgb: Image.Image, given: Image.Image, *, owned: bool) -> Image.Image:
    """`rgb` without tags and profile: what was applied must not be applied a second time."""
    if rgb is given and not given.info and type(given) is Image.Image:
        return given
    bare = _pixels_alone(given, owned=owned) if rgb is given else rgb
    bare.info = {}
    return bare


def _pixels_alone(image: Image.Image, *, owned: bool) -> Image.Image:
    """A plain image of the same pixels, whose tags may be taken off."""
    return image if owned and type(image) is Image.Image else image.copy()


def page_colour(text: str) -> Colour:
    """The colour that `#rrggbb` means, sRGB."""
    red, green, blue = bytes.fromhex(text.removeprefix("#"))
    return red, green, blue


def exif_orientation(image: Image.Image, flags: set[str]) -> int:
    """The EXIF orientation of an opened image, 1..8; 1 where there is none or a senseless one.

    Orientation in XMP or in text alone is not followed, as browsers do not: Pillow's `getexif`
    would.

    Args:
        image: opened; a PNG is loaded, since its EXIF may come after the pixels.
        flags: `exif_unreadable` is added where the tags are damaged.
    """
    if image.format == "PNG":
        image.load()
    for key in _NOT_FOLLOWED:
        image.info.pop(key, None)
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except (*_EXIF_ERRORS, struct.error):
        flags.add("exif_unreadable")
        return 1
    return int(value) if value in _TURNS else 1


def turned(image: Image.Image, orientation: int) -> Image.Image:
    """`image` as it is meant to be seen, given its EXIF orientation."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def to_rgb(image: Image.Image, flags: set[str], background: Colour = WHITE) -> Image.Image:
    """RGB as a viewer shows it on a page of colour `background`; embedded profiles are followed.

    Args:
        image: loaded.
        flags: `alpha_composited`, `depth_reduced`, `cmyk_converted`, `cmyk_without_marker`,
            `icc_converted` and `icc_ignored` are added where they apply.
        background: what is seen through transparent pixels, sRGB.

    Raises:
        MemberRejected: IMAGE_UNSUPPORTED for modes without a stated range (32-bit, float, Lab).
    """
    profile = image.info.get("icc_profile")
    if image.mode.startswith("I;16") or _is_deep(image):
        flags.add("depth_reduced")
    if image.mode.startswith("I;16"):
        image = _reduced(image)
    if image.has_transparency_data:
        return _on_page(image, profile, flags, background)
    if image.mode == "CMYK":
        flags.add("cmyk_converted")
        if image.format == "JPEG" and "adobe" not in image.info:
            flags.add("cmyk_without_marker")
        return to_srgb(image, profile, flags).convert("RGB")
    if image.mode not in _DIRECT_MODES:
        raise MemberRejected(RejectReason.IMAGE_UNSUPPORTED, f"pixel mode {image.mode}")
    return _coloured(image, profile, flags)


def _coloured(image: Image.Image, profile: bytes | None, flags: set[str]) -> Image.Image:
    """An opaque image in sRGB; a profile for grey fits grey images, one for RGB fits any."""
    if profile is None:
        return image if image.mode == "RGB" else image.convert("RGB")
    is_grey_profile = profile[16:20] == b"GRAY"  # ICC.1, 7.2.6: the data colour space
    grey = is_grey_profile and image.mode in _GREY_MODES
    return to_srgb(image.convert("L" if grey else "RGB"), profile, flags).convert("RGB")


def _reduced(image: Image.Image) -> Image.Image:
    """16-bit grey to 8 bits by rounding `value / 257`; Pillow's own conversion clips at 255."""
    values = np.asarray(image)
    grey = Image.fromarray(np.rint(values.astype(np.float64) / 257).astype(np.uint8))
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        alpha = Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8))
        return Image.merge("LA", (grey, alpha))
    return grey


def _on_page(
    image: Image.Image, profile: bytes | None, flags: set[str], background: Colour
) -> Image.Image:
    layer = image.convert("RGBA")
    alpha = layer.getchannel("A")
    opaque = layer.convert("RGB")
    if image.mode == "LA":
        opaque = opaque.getchannel("R")
    colours = _coloured(opaque, profile, flags)
    if alpha.getextrema()[0] == 255:
        return colours
    if image.format == "BMP" and not alpha.getbbox():  # the fourth byte was never meant as alpha
        flags.add("alpha_ignored")
        return colours
    flags.add("alpha_composited")
    page = Image.new("RGBA", layer.size, (*background, 255))
    colours.putalpha(alpha)
    return Image.alpha_composite(page, colours).convert("RGB")


def _is_deep(image: Image.Image) -> bool:
    """Whether Pillow dropped the lower 8 of 16 bits while loading (TIFF, tag 258)."""
    bits = getattr(image, "tag_v2", {}).get(258, (8,))
    return any(bit > 8 for bit in (bits if isinstance(bits, tuple) else (bits,)))
