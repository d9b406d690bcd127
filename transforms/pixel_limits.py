"""How many bytes of pixels may wait at each stage, chosen from the memory that is free.

Counts alone would not do: 256 screens of 1280x800 are one GiB, 256 pages of 200 megapixels are more
than a node has. Half of what is free when a lot begins, in equal parts for four places, is ours;
the other half is for what libraries hold for a moment, for the rows, and for the engine. One screen
always passes, however large: limits say how many wait, `input.max_pixels` says which are taken.
"""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass

from PIL import Image

from schemas.errors import MemberRejected
from transforms.decode import PILLOW_ERRORS
from transforms.engines.base import EngineRequest
from transforms.image_files import image_format, open_image
from transforms.work import Asked, ComposeEvent, Decoded, DecodeEvent

SHARE = 8
"""Each place may hold one part of so many of what is free."""

STORED = 4
"""Bytes that Pillow stores for a pixel of RGB."""

PROCESSED = 24
"""Bytes of a pixel once vLLM has processed it: patches of Qwen's processors are 32-bit floats of
three colours, each twice for time; the other families need less."""


@dataclass(frozen=True, slots=True)
class PixelLimits:
    """Bytes of pixels that may wait at most; None = only their number is bounded.

    Attributes:
        decode: screens that are decoded ahead of their turn.
        compose: screens that are resized ahead of their turn.
        ready: screens that wait for the engine.
        in_flight: screens that the engine holds.
    """

    decode: int | None = None
    compose: int | None = None
    ready: int | None = None
    in_flight: int | None = None


def pixel_limits(free: int) -> PixelLimits:
    """The limits for so many free bytes."""
    part = free // SHARE
    return PixelLimits(part, part, part, part)


def raw_weight(data: bytes) -> int:
    """Bytes that an image file takes while it is decoded: itself, its pixels, a copy of them.

    A file whose header cannot be read is refused soon, and weighs what it is.
    """
    try:
        with open_image(image_format(data), io.BytesIO(data)) as image:
            width, height = image.size
    except (MemberRejected, *PILLOW_ERRORS):
        return len(data)
    return len(data) + 2 * STORED * width * height


def decoded_weight(event: DecodeEvent) -> int:
    """Bytes that a screen takes while it is resized: the original, and what is made of it."""
    return 2 * _stored(event.image) if isinstance(event, Decoded) else 0


def asked_weight(event: ComposeEvent) -> int:
    """Bytes that a screen takes while it waits: its requests share one image."""
    return _stored(event.asks[0].request.image) if isinstance(event, Asked) and event.asks else 0


class ImagesInFlight:
    """The images of the requests that the engine holds; those of one screen share one."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._held = 0
        self._bytes: dict[str, int] = {}
        self._users: Counter[str] = Counter()
        self._image_of: dict[str, str] = {}

    def take(self, request: EngineRequest) -> bool:
        """Whether there is room for the image of a request, which then is counted.

        There always is where the engine holds it already, or holds nothing.
        """
        key, weight = request.image_key, request_weight(request)
        if key not in self._bytes:
            if self._held and self._most is not None and self._held + weight > self._most:
                return False
            self._bytes[key] = weight
            self._held += weight
        self._users[key] += 1
        self._image_of[request.request_id] = key
        return True

    def drop(self, request_id: str) -> None:
        """A request is answered."""
        key = self._image_of.pop(request_id)
        self._users[key] -= 1
        if not self._users[key]:
            self._held -= self._bytes.pop(key)
            del self._users[key]


def request_weight(request: EngineRequest) -> int:
    """Bytes that the image of a request takes in the engine: its pixels, and what vLLM makes."""
    width, height = request.image.size
    return (STORED + PROCESSED) * width * height


def _stored(image: Image.Image) -> int:
    return STORED * image.width * image.height
