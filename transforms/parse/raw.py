"""The numbers of an answer as the model said them, for those who do not know its frame yet."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.parse.formats import READERS
from transforms.parse.text import MAX_CHARS


@dataclass(frozen=True, slots=True)
class RawNumbers:
    """Two numbers of a point or four of a box, in the model's order and frame; one is None."""

    point: tuple[float, float] | None
    box: tuple[float, float, float, float] | None


def raw_numbers(text: str, finish_reason: str, answer_format: str) -> RawNumbers | None:
    """What one completion says, without a frame, or None unless it names exactly one place.

    Args:
        text: the completion, any string at all.
        finish_reason: the engine's word.
        answer_format: one of `ANSWER_FORMATS`.

    Raises:
        KeyError: for an unknown `answer_format`; nothing in `text` raises.
    """
    if len(text) > MAX_CHARS:
        return None
    reading = READERS[answer_format](text, finish_reason == "length")
    said = {(place.point, place.box) for place in reading.places}
    if reading.status is not None or len(said) != 1:
        return None
    point, box = said.pop()
    if point is not None and len(point) == 2:
        return RawNumbers((point[0], point[1]), None)
    if box is not None and len(box) == 4:
        return RawNumbers(None, (box[0], box[1], box[2], box[3]))
    return None
