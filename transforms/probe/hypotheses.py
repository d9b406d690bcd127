"""The conventions a model may follow, and where each says that its numbers point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from schemas.errors import MemberRejected
from schemas.geometry import FrameKind, Point, SeenImage, point_from_frame
from schemas.resize import AnyResizeRule, CanvasRule, ResizeRule, TileRule
from transforms.parse.raw import RawNumbers
from transforms.resize import seen_chain


class Order(StrEnum):
    """Which axis comes first in a pair of numbers."""

    XY = "xy"
    YX = "yx"


class BoxForm(StrEnum):
    """What the last two numbers of a box are: its far corner, or its size."""

    CORNERS = "xyxy"
    SIZE = "xywh"


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One convention.

    Attributes:
        frame: what the numbers are measured in.
        rule: what the processor does to the image we show, before the model measures on it;
            None = nothing, it sees what we show.
        rule_name: the rule in words, empty for None.
    """

    frame: FrameKind
    rule: AnyResizeRule | None = None
    rule_name: str = ""
    order: Order = Order.XY
    box_form: BoxForm = BoxForm.CORNERS

    @property
    def name(self) -> str:
        """In words, for a table."""
        parts = [_FRAME_WORDS[self.frame], self.rule_name]
        parts.append("y before x" if self.order is Order.YX else "")
        parts.append("box as x, y, width, height" if self.box_form is BoxForm.SIZE else "")
        return ", ".join(part for part in parts if part)

    def locate(self, numbers: RawNumbers, shown: SeenImage) -> Point:
        """Where an answer points, in original pixels: its point, or the middle of its box.

        Args:
            numbers: as the model said them.
            shown: how the shown image was made from the original.
        """
        first, second = self._middle(numbers)
        x, y = (first, second) if self.order is Order.XY else (second, first)
        return point_from_frame(x, y, self.frame, seen_chain(shown, self.rule))

    def _middle(self, numbers: RawNumbers) -> tuple[float, float]:
        if numbers.point is not None:
            return numbers.point
        assert numbers.box is not None
        a, b, c, d = numbers.box
        if self.box_form is BoxForm.SIZE:
            return a + c / 2, b + d / 2
        return (a + c) / 2, (b + d) / 2


_FRAME_WORDS = {
    FrameKind.ORIGINAL_PX: "pixels of the original",
    FrameKind.SEEN_PX: "pixels of the seen image",
    FrameKind.NORM_1000: "0 to 1000",
    FrameKind.NORM_999: "0 to 999",
    FrameKind.NORM_1: "0 to 1",
    FrameKind.PERCENT: "percent",
}

_USUAL = (
    FrameKind.NORM_1000,
    FrameKind.SEEN_PX,
    FrameKind.ORIGINAL_PX,
    FrameKind.NORM_1,
    FrameKind.PERCENT,
    FrameKind.NORM_999,
)


def unusualness(one: Hypothesis) -> tuple[bool, bool, bool, int]:
    """A sort key: what published models do most comes first; decides nothing but an order."""
    return (
        one.order is Order.YX,
        one.box_form is BoxForm.SIZE,
        one.rule is not None,
        _USUAL.index(one.frame),
    )


KNOWN_RULES: dict[str, AnyResizeRule] = {
    "smart resize by 28": ResizeRule(factor=28, min_pixels=3_136, max_pixels=12_845_056),
    "smart resize by 28 to 1.0 Mpx": ResizeRule(factor=28, min_pixels=3_136, max_pixels=1_003_520),
    "smart resize by 32": ResizeRule(factor=32, min_pixels=65_536, max_pixels=16_777_216),
    "tiles of 512": TileRule(kind="tiles", tile=512, max_tiles=12),
    "tiles of 448": TileRule(kind="tiles", tile=448, max_tiles=12),
    "canvas of 1008x672": CanvasRule(kind="canvas", width=1008, height=672),
}
"""Resize rules of published families: what a processor may do besides what the profile says."""


def hypotheses(chains: Sequence[SeenImage], *, boxes: bool) -> tuple[Hypothesis, ...]:
    """All conventions worth comparing on some shown images, the usual ones first.

    A rule that changes nothing on these images says nothing new and is left out.

    Args:
        chains: how each shown image was made.
        boxes: whether any answer was a box, so that its form is in question.
    """
    frames = [Hypothesis(frame) for frame in FrameKind]
    for name, rule in KNOWN_RULES.items():
        if not _changes(rule, chains):
            continue
        frames.append(Hypothesis(FrameKind.SEEN_PX, rule, name))
        if isinstance(rule, CanvasRule):  # elsewhere fractions are the same before and after
            frames.append(Hypothesis(FrameKind.NORM_1000, rule, name))
    forms = tuple(BoxForm) if boxes else (BoxForm.CORNERS,)
    return tuple(
        Hypothesis(one.frame, one.rule, one.rule_name, order, form)
        for form in forms
        for order in Order
        for one in frames
    )


def _changes(rule: AnyResizeRule, chains: Sequence[SeenImage]) -> bool:
    """Whether the rule can be applied to every image, and alters at least one."""
    try:
        return any(seen_chain(chain, rule) != chain for chain in chains)
    except MemberRejected:
        return False


Relation = Literal["best", "tied", "open", "worse"]
"""A hypothesis beside the best one: `tied` points to the same places, `open` elsewhere but about
as well, `worse` is ruled out."""
