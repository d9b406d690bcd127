"""From the job's `[input]` to what the stages that read need."""

from __future__ import annotations

from pipeline.config import InputConfig
from transforms.decode import ImageSettings
from transforms.pixels import page_colour
from transforms.sidecar_boxes import BoxConvention


def image_settings(source: InputConfig) -> ImageSettings:
    """Which image files are taken, and the page colour under transparency."""
    return ImageSettings(
        max_pixels=source.max_pixels,
        max_side=source.max_side,
        max_aspect=source.max_aspect,
        max_bytes=source.max_bytes,
        max_png_chunks=source.max_png_chunks,
        background=page_colour(source.background),
    )


def box_convention(source: InputConfig) -> BoxConvention | None:
    """How the job says that boxes of sidecars are meant, or None where it does not say."""
    declared = source.boxes
    return None if declared is None else BoxConvention(declared.format, declared.frame)
