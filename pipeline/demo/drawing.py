"""The demo's drawn shards: screens that nano knows, and harder ones where it is sometimes wrong.

`python -m pipeline.demo.drawing` writes the two tars anew; a test compares their content.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from pipeline.nano.prompts import TARGETS
from pipeline.nano.screens import HARDER, PLAIN, Screen, Split, draw_screen
from schemas.ids import Json

FOLDER = Path(__file__).with_name("drawn")
"""Where the drawn shards lie."""

SCREENS = 12
"""Screens of each shard."""

ASKED = 4
"""Queries of each screen at most: the last is about a button that is not there."""

SPLITS: dict[str, tuple[Split, int]] = {
    "nano-plain": (PLAIN, 900_000),
    "nano-harder": (HARDER, 910_000),
}
"""Shard name -> what is drawn and its first seed; training draws seeds from 1,000,000 on."""


def drawn_shard(name: str) -> bytes:
    """The bytes of one shard: a WebDataset tar without times, owners or modes of its own."""
    split, first = SPLITS[name]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for seed in range(first, first + SCREENS):
            screen = draw_screen(seed, split)
            for suffix, data in (("png", _png(screen)), ("json", _sidecar(name, seed, screen))):
                member = tarfile.TarInfo(f"{name}-{seed}.{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _png(screen: Screen) -> bytes:
    buffer = io.BytesIO()
    screen.image().save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _sidecar(name: str, seed: int, screen: Screen) -> bytes:
    boxes = [list(button.box) for button in screen.buttons]
    document: dict[str, Json] = {
        "app": name,
        "licence": "Apache-2.0",
        "locale": "es",
        "image_size": list(screen.size),
        "elements": [
            {"role": "button", "name": button.text, "bbox_px": box, "visible": True}
            for button, box in zip(screen.buttons, boxes, strict=True)
        ],
        "queries": _queries(seed, screen),
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def _queries(seed: int, screen: Screen) -> list[Json]:
    """Up to three buttons that are there, each named in another way, and one that is not."""
    queries: list[Json] = [
        {
            "instruction": TARGETS[(seed + i) % len(TARGETS)].format(button.text),
            "target": i,
            "bbox_px": list(button.box),
        }
        for i, button in enumerate(screen.buttons[: ASKED - 1])
    ]
    absent = screen.absent()
    text = TARGETS[seed % len(TARGETS)].format(absent[seed % len(absent)])
    return [*queries, {"instruction": text, "target": None}]


def main() -> None:
    """Write the drawn shards into the package."""
    for name in SPLITS:
        (FOLDER / f"{name}.tar").write_bytes(drawn_shard(name))


if __name__ == "__main__":
    main()
