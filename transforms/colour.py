"""Colours of an embedded ICC profile to sRGB, which is what every model was trained on."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

_TOLERANCE = 1
"""Levels of 255 by which a profile may differ from sRGB and still count as it."""

_GRID = 9
"""Levels a channel at which a profile is compared with sRGB."""

_PROFILE_ERRORS = (OSError, ImageCms.PyCMSError, ValueError, TypeError)


def to_srgb(image: Image.Image, profile: bytes | None, flags: set[str]) -> Image.Image:
    """`image` in sRGB colours; unchanged where its profile is sRGB, missing or senseless.

    Relative colorimetric, with black point compensation, as browsers convert images.

    Args:
        image: of mode L, RGB or CMYK.
        profile: the ICC profile that came with the image, or None.
        flags: `icc_converted` is added where colours changed their numbers, `icc_ignored` where
            the profile cannot be read or is made for other channels.

    Returns:
        An RGB image where the profile was applied, else `image` itself.
    """
    if not profile:
        return image
    try:
        transform = _transform(profile, image.mode)
        if transform is None:
            return image
        converted = ImageCms.applyTransform(image, transform)
    except _PROFILE_ERRORS:
        flags.add("icc_ignored")
        return image
    flags.add("icc_converted")
    return converted or image


@lru_cache(maxsize=32)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """The transform from `profile` to sRGB, None where it changes nothing.

    Raises:
        PyCMSError, OSError: if the profile is damaged or not for images of `mode`.
    """
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    transform = ImageCms.buildTransform(
        source,
        ImageCms.createProfile("sRGB"),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    return None if mode != "CMYK" and _is_identity(transform, mode) else transform


def _is_identity(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    if mode == "L":
        grid = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(1, 256))
    else:
        levels = np.linspace(0, 255, _GRID).astype(np.uint8)
        corners = np.stack(np.meshgrid(levels, levels, levels), axis=-1)
        grid = Image.fromarray(corners.reshape(1, -1, 3))
    after = ImageCms.applyTransform(grid, transform)
    before = np.asarray(grid.convert("RGB"), dtype=np.int16)
    change = np.abs(np.asarray(after, dtype=np.int16) - before)
    return bool(change.max() <= _TOLERANCE)
