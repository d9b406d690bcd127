"""Does the loaded processor leave alone what we show it, and does the engine see all of it?

A profile states how the model's processor resizes; the engine has the processor itself. Where the
two differ, coordinates in seen pixels are wrong without a sign of it, so they are compared before
the first real screen is asked (see cases B007, B089 and B091 of the field's reports).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.errors import MemberRejected
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.profile import ModelProfile
from schemas.resize import AnyResizeRule
from transforms.resize import image_tokens, seen_chain, seen_size

CHECK_SIZES = (
    Size(1920, 1080),
    Size(1366, 768),
    Size(390, 844),
    Size(320, 200),
    Size(3840, 2160),
    Size(1080, 10_000),
    Size(2560, 1080),
)
"""Screens of common and of extreme shapes, on which rules of other factors and bounds differ."""

MAX_PIXELS_PER_TOKEN = 8192.0
"""Original pixels behind one image token; known models have 784 to 3600. Beyond this, text of
ordinary size is no longer told apart."""


@dataclass(frozen=True, slots=True)
class SizeMismatch:
    """One size on which profile and engine disagree; what each says, as text."""

    original: Size
    expected: str
    found: str

    def __str__(self) -> str:
        size = f"{self.original.width}x{self.original.height}"
        return f"{size}: the profile's rule gives {self.expected}, the engine {self.found}"


def compare_rules(
    profile: ModelProfile, frame: FrameKind, loaded: AnyResizeRule | None
) -> list[SizeMismatch]:
    """Sizes at which the loaded processor changes what the profile's rule shows it.

    A stricter profile is right: what it shows lies within the processor's bounds and stays as it
    is. A profile without a rule shows the original, which the processor may resize as it likes
    as long as the answers are not in seen pixels.

    Args:
        profile: its resize rule is compared.
        frame: the convention of the answers.
        loaded: the rule of the loaded processor; None = unknown, nothing to compare.
    """
    if loaded is None or (profile.resize is None and frame is not FrameKind.SEEN_PX):
        return []
    found = []
    for original in CHECK_SIZES:
        shown = seen_chain(SeenImage.unchanged(original), profile.resize).seen
        seen = _seen_by(shown, loaded)
        if seen != shown:
            found.append(SizeMismatch(original, _text(shown), _text(seen)))
    return found


def compare_tokens(
    profile: ModelProfile, counted: Iterable[tuple[SeenImage, int | None]]
) -> list[SizeMismatch]:
    """Images for which the engine counts another number of image tokens than the rule implies.

    Args:
        profile: its resize rule implies the number.
        counted: per image, how it was shown and the engine's count; None = not counted.
    """
    found: dict[Size, SizeMismatch] = {}
    for chain, tokens in counted:
        expected = image_tokens(chain.seen, profile.resize)
        if tokens is None or expected is None or tokens == expected:
            continue
        found[chain.original] = SizeMismatch(
            chain.original, f"{expected} image tokens", f"{tokens} image tokens"
        )
    return list(found.values())


def coarse_images(counted: Iterable[tuple[SeenImage, int | None]]) -> list[str]:
    """Images of which the model sees too little: more than `MAX_PIXELS_PER_TOKEN` a token."""
    found: dict[Size, str] = {}
    for chain, tokens in counted:
        size = chain.original
        share = size.width * size.height / tokens if tokens else 0.0
        if share > MAX_PIXELS_PER_TOKEN:
            found[size] = (
                f"{_text(size)}: {tokens} image tokens, {share:.0f} original pixels behind each"
            )
    return list(found.values())


def _seen_by(shown: Size, loaded: AnyResizeRule) -> Size | None:
    try:
        return seen_size(shown, loaded)
    except MemberRejected:
        return None


def _text(size: Size | None) -> str:
    return "nothing: it refuses the image" if size is None else f"{size.width}x{size.height}"
