"""Apply a resize rule of any kind: to pixels, to a size, and to the chain between two images."""

from __future__ import annotations

from typing import assert_never

from PIL import Image

from schemas.geometry import SeenImage, Size
from schemas.resize import AnyResizeRule, CanvasRule, ResizeRule, TileRule
from transforms.pixels import normalize
from transforms.resize.canvas import fitted_size
from transforms.resize.smart import smart_size
from transforms.resize.tiles import tile_count, tiled_size


def seen_image(image: Image.Image, rule: AnyResizeRule | None) -> tuple[Image.Image, SeenImage]:
    """The image the model sees, and how it was made.

    What is shown has the size the processor makes of it, so that the processor's own resize is
    the identity and the chain to what the model sees is known whole.

    Args:
        image: the original; one that is not plain upright RGB takes the step that file bytes
            take (`transforms.pixels.normalize`), so that both show the model the same pixels.
        rule: the processor's rule; None = shown as it is.

    Returns:
        The image, resized with a bicubic filter (the processor's own) where its size changes, and
        the chain from original to seen pixels. A smart resize keeps the aspect up to the rounding
        of each side, a canvas up to one pixel, tiles do not keep it.

    Raises:
        MemberRejected: `image_too_narrow` when a smart resize refuses so narrow an image.
        ConfigError: when a smart rule's bounds leave no room for a multiple of its factor.
    """
    image = normalize(image).image
    chain = seen_chain(SeenImage.unchanged(Size(*image.size)), rule)
    if rule is None or (chain.seen == chain.original and not isinstance(rule, CanvasRule)):
        return image, chain
    if isinstance(rule, CanvasRule):
        return _on_canvas(image, rule), chain
    return _resized(image, chain.seen), chain


def seen_chain(chain: SeenImage, rule: AnyResizeRule | None) -> SeenImage:
    """`chain` followed by what `rule` does to its seen image; geometry alone, no pixels.

    Raises:
        MemberRejected: see `seen_image`.
        ConfigError: see `seen_image`.
    """
    match rule:
        case None:
            return chain
        case ResizeRule() | TileRule():
            return chain.resized(seen_size(chain.seen, rule))
        case CanvasRule():
            fitted = chain.resized(fitted_size(chain.seen, rule))
            return fitted.placed(Size(rule.width, rule.height), 0, 0)
        case _:
            assert_never(rule)


def seen_size(original: Size, rule: AnyResizeRule) -> Size:
    """The size of what the model sees of an image, in pixels.

    Raises:
        MemberRejected: see `seen_image`.
        ConfigError: see `seen_image`.
    """
    match rule:
        case ResizeRule():
            return smart_size(original, rule)
        case TileRule():
            return tiled_size(original, rule)
        case CanvasRule():
            return Size(rule.width, rule.height)
        case _:
            assert_never(rule)


def image_tokens(seen: Size, rule: AnyResizeRule | None) -> int | None:
    """Image tokens the engine should count for a shown image, or None where the rule cannot say.

    Args:
        seen: size of the shown image, as the rule made it.
        rule: the rule that made it.
    """
    match rule:
        case ResizeRule():
            return seen.width * seen.height // rule.factor**2
        case TileRule():
            return tile_count(seen, rule) * rule.tile_tokens
        case _:
            return None


def _resized(image: Image.Image, size: Size) -> Image.Image:
    return image.resize((size.width, size.height), Image.Resampling.BICUBIC)


def _on_canvas(image: Image.Image, rule: CanvasRule) -> Image.Image:
    canvas = Image.new("RGB", (rule.width, rule.height), rule.fill)
    canvas.paste(_resized(image, fitted_size(Size(*image.size), rule)), (0, 0))
    return canvas
