"""Pixels of a JPEG, none of them invented.

Pillow does not pass on the warnings of libjpeg, which fills a hole in the coded data with grey and
goes on. The same library asked through `simplejpeg` reports them; its pixels are the same.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from schemas.codes import RejectReason
from schemas.errors import MemberRejected

_COLOUR_SPACES = {"RGB": "RGBX", "L": "GRAY", "CMYK": "CMYK"}
"""What to ask of libjpeg for each mode of Pillow's, which keeps colours in four bytes as RGBX."""

_HARMLESS = ("unknown jfif revision", "unknown adobe color transform")
"""Warnings of libjpeg (jerror.h) after which every pixel is still what was coded."""

_EXTRA = re.compile(r"(\d+) extraneous bytes")
MAX_EXTRA = 64
"""Bytes that an encoder may leave before a marker; more of them are pixels out of step."""

_CUT = "premature end"

_UNSUPPORTED = re.compile(r"unsupported|not supported|cannot handle|not available", re.IGNORECASE)
"""Pillow and libjpeg, of files with more than 8 bits, lossless ones, or an unknown codec."""


def load_jpeg(image: Image.Image, data: bytes) -> Image.Image:
    """The pixels, with the tags and the profile of the opened file.

    Args:
        image: the opened file, not loaded.
        data: its bytes.

    Raises:
        MemberRejected: IMAGE_TRUNCATED where coded data are missing, IMAGE_CORRUPT where they are
            damaged, also in the middle of the file.
    """
    import simplejpeg

    space = _COLOUR_SPACES.get(image.mode)
    if space is None:
        image.load()
        return image
    try:
        pixels = simplejpeg.decode_jpeg(data, colorspace=space, strict=True)
    except ValueError as error:
        _judge(str(error))
        image.load()
        return image
    if space == "CMYK":  # Pillow knows which way round the inks of an Adobe file are
        image.load()
        return image
    whole = Image.fromarray(pixels[:, :, 0]) if space == "GRAY" else _taken_over(pixels)
    whole.info, whole.format = dict(image.info), image.format
    return whole


def _taken_over(pixels: NDArray[np.uint8]) -> Image.Image:
    """Pixels of shape (height, width, 4) as an RGB image, without a copy.

    `Image.frombuffer` would want a conversion after it, which costs as much as half the decoding.
    """
    import pyarrow as pa

    height, width, _ = pixels.shape
    flat = pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), 4)
    return Image.fromarrow(flat, "RGB", (width, height))


def is_unsupported(said: str) -> bool:
    """Whether a decoder's error says that the file is of a kind it does not read at all."""
    return _UNSUPPORTED.search(said) is not None


def _judge(said: str) -> None:
    lower = said.lower()
    if is_unsupported(said):
        raise MemberRejected(RejectReason.IMAGE_UNSUPPORTED, f"JPEG: {said}")
    extra = _EXTRA.search(lower)
    if any(known in lower for known in _HARMLESS) or (extra and int(extra[1]) <= MAX_EXTRA):
        return
    reason = RejectReason.IMAGE_TRUNCATED if _CUT in lower else RejectReason.IMAGE_CORRUPT
    raise MemberRejected(reason, f"JPEG: {said}")
