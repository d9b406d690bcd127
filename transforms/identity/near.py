"""Pictures that look alike: PDQ hashes, and all near ones of many without comparing every pair.

PDQ is the perceptual hash of Meta's ThreatExchange: 256 bits of the low frequencies of a grey 64x64
picture, each against the median. Recompression and scaling change a few bits; two pages of one
application differ in tens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from PIL import Image

BITS = 256
BANDS = 16
_BAND_BITS = BITS // BANDS

MAX_DISTANCE = 2 * BANDS - 1
"""Furthest distance that is searched exactly: 31, which is what PDQ's authors call a match.

If two hashes differ in at most 31 bits, they differ in at most one bit in one of 16 bands
(pigeonhole; multi-index hashing, Norouzi, Punjani and Fleet 2012)."""

MIN_QUALITY = 50
"""PDQ's measure of how much there is to see, 0..100; its authors use no hash below this."""

_SIDE = 512
"""PDQ's authors shrink to this before hashing: less than a tenth of the time, the same hash but for
a bit or two."""

_FLIPS = (0, *(1 << bit for bit in range(_BAND_BITS)))


def perceptual_hash(image: Image.Image) -> str:
    """PDQ hash of an RGB image as 64 hex digits; empty where there is too little to see."""
    import pdqhash

    small = image.resize((_SIDE, _SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0)
    bits, quality = pdqhash.compute(np.asarray(small))
    if quality < MIN_QUALITY:
        return ""
    return np.packbits(np.asarray(bits, dtype=np.uint8)).tobytes().hex()


def distance(a: str, b: str) -> int:
    """Bits in which two hashes differ, of 256."""
    return (int(a, 16) ^ int(b, 16)).bit_count()


class NearIndex:
    """Hashes by position, and which of them lie near another one.

    A look-up probes 17 values in each of 16 bands and compares what it finds there: far from all,
    unless very many look alike.

    Args:
        limit: bits in which two may differ and still be near, at most `MAX_DISTANCE`.

    Raises:
        ValueError: if the limit is greater: near ones would be missed.
    """

    def __init__(self, limit: int) -> None:
        if not 0 <= limit <= MAX_DISTANCE:
            raise ValueError(f"a distance of 0..{MAX_DISTANCE} can be searched, not {limit}")
        self._limit = limit
        self._bands: list[defaultdict[int, list[int]]] = [defaultdict(list) for _ in range(BANDS)]
        self._hashes: dict[int, int] = {}

    def add(self, position: int, value: str) -> None:
        """Remember a hash under a position, which is not in use yet."""
        number = int(value, 16)
        self._hashes[position] = number
        for band, piece in zip(self._bands, _pieces(number), strict=True):
            band[piece].append(position)

    def near(self, value: str) -> list[tuple[int, int]]:
        """Position and distance of every hash within the limit, by position."""
        number = int(value, 16)
        hits = {
            position
            for band, piece in zip(self._bands, _pieces(number), strict=True)
            for flip in _FLIPS
            for position in band.get(piece ^ flip, ())
        }
        measured = ((position, (self._hashes[position] ^ number).bit_count()) for position in hits)
        return sorted((position, bits) for position, bits in measured if bits <= self._limit)


def _pieces(number: int) -> Iterator[int]:
    mask = (1 << _BAND_BITS) - 1
    return ((number >> shift) & mask for shift in range(0, BITS, _BAND_BITS))
