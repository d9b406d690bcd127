"""Samples that the Label Studio tests share."""

import io
from dataclasses import replace

from PIL import Image, ImageDraw

from schemas.codes import QueryKind, Role, SampleStatus
from schemas.geometry import Box, Point, Size
from schemas.ids import sha256_hex
from schemas.records import Item
from schemas.review import ReviewSample

SIZE = Size(1280, 800)
BUTTON = Box(700, 420, 860, 470)
"""Where the synthetic screen has its button, original px."""

GROUNDING = ReviewSample(
    sample_id="muestra-1",
    screen_id="a" * 64,
    kind=QueryKind.GROUNDING,
    instruction="Guardar los cambios",
    status=SampleStatus.OK,
    items=(Item(point=Point(320, 200), box=Box(256, 160, 384, 240), role=Role.BUTTON),),
    candidates=(),
    size=SIZE,
    probability=0.4,
    model="nano abc123",
)


def many(count: int, prefix: str = "muestra") -> list[ReviewSample]:
    """`count` samples about two screens."""
    return [
        replace(
            GROUNDING,
            sample_id=f"{prefix}-{index:03d}",
            screen_id=("a" if index % 2 else "b") * 64,
            probability=index / 1000,
        )
        for index in range(count)
    ]


def screen_png(size: Size = SIZE, button: Box = BUTTON) -> bytes:
    """A synthetic screen with one blue button."""
    image = Image.new("RGB", (size.width, size.height), (244, 244, 246))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, size.width, 64), fill=(40, 60, 90))
    draw.rectangle((64, 120, size.width - 64, size.height - 64), fill="white", outline="#bbbbbb")
    draw.rectangle(button.corners, fill=(30, 90, 200))
    draw.text((button.x1 + 40, button.y1 + 18), "Guardar", fill="white")
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


SCREEN = screen_png()
SCREEN_ID = sha256_hex(SCREEN)


def image_of(screen_id: str) -> bytes:
    """The same picture for every screen."""
    return SCREEN
