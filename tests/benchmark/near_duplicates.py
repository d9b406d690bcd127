"""What look-alikes cost: `python -m tests.benchmark.near_duplicates [SHARD.tar]`.

Prints, for the screens of a tar (by default the bundled real ones), processor time to hash their
bytes, to decode them and to hash what they look like; and the time to find the near ones among many
hashes, drawn so that one of ten is a near copy. Figures are printed, nothing is asserted.
"""

from __future__ import annotations

import random
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from pipeline.demo.demo import screens_dir
from schemas.ids import sha256_hex
from transforms.decode import ImageSettings, decode_image
from transforms.identity.near import BITS, NearIndex, perceptual_hash

SCREENS = 24
LIMIT = 10
COUNTS = (1_000, 10_000, 100_000)

T = TypeVar("T")


def timed(name: str, call: Callable[[T], object], items: Iterable[T]) -> None:
    """Print the processor time of `call` an item."""
    listed = list(items)
    began = time.process_time()
    for item in listed:
        call(item)
    took = 1000 * (time.process_time() - began) / len(listed)
    print(f"{name:<34} {took:8.2f} ms a screen, {len(listed)} screens")


def screens(path: Path) -> list[bytes]:
    """The first images of a tar."""
    found: list[bytes] = []
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if member.name.endswith(".png") and stream is not None and len(found) < SCREENS:
                found.append(stream.read())
    return found


def hashes(count: int) -> list[str]:
    """Random hashes, of which every tenth is an earlier one with a few bits changed."""
    chance = random.Random(7)
    found: list[int] = []
    for i in range(count):
        number = chance.getrandbits(BITS)
        if i % 10 == 9:
            number = chance.choice(found)
            for bit in chance.sample(range(BITS), LIMIT - 2):
                number ^= 1 << bit
        found.append(number)
    return [f"{number:064x}" for number in found]


def look_up(count: int) -> None:
    """Print the time to find the near ones among `count` hashes, one after the other."""
    index, hits = NearIndex(LIMIT), 0
    values = hashes(count)
    began = time.process_time()
    for position, value in enumerate(values):
        if index.near(value):
            hits += 1
        else:
            index.add(position, value)
    took = time.process_time() - began
    each = 1000 * took / count
    print(f"near ones among {count:>7} hashes     {each:8.3f} ms a screen, {hits} found")


def main(path: Path) -> None:
    """Run all of it."""
    data = screens(path)
    images = [decode_image(screen, ImageSettings()).image for screen in data]
    perceptual_hash(images[0])  # the import is not part of the price
    timed("SHA-256 of the bytes", sha256_hex, data)
    timed("decode", lambda screen: decode_image(screen, ImageSettings()), data)
    timed("PDQ hash", perceptual_hash, images)
    for count in COUNTS:
        look_up(count)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else screens_dir() / "admin.tar")
