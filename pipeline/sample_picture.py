"""One stored sample drawn on its screen."""

from __future__ import annotations

from PIL import Image

from pipeline.colours import route_colour
from pipeline.draw import draw_answer
from pipeline.rows import SampleRow


def draw_sample(picture: Image.Image, sample: SampleRow, *, truth: bool = True) -> Image.Image:
    """The answer in its route's colour, the single answers faintly, and the truth if wanted.

    Args:
        picture: the original upright screenshot.
        sample: what was asked and answered.
        truth: draw what the sidecar knows.
    """
    return draw_answer(
        picture,
        sample.items,
        route_colour(sample.route),
        candidates=[(candidate.point, candidate.box) for candidate in sample.candidates],
        truth=[known.box for known in sample.truth] if truth else (),
    )
