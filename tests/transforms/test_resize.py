"""What the model sees: our resize equals the processor's, and pixels find their way back."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

from schemas.errors import ConfigError, MemberRejected
from schemas.geometry import Point, SeenImage, Size
from schemas.resize import ResizeRule
from transforms.resize import seen_image, seen_size

QWEN3 = ResizeRule(factor=32, min_pixels=65_536, max_pixels=16_777_216)
QWEN2 = ResizeRule(factor=28, min_pixels=3_136, max_pixels=1_003_520)

_sides = st.integers(min_value=1, max_value=20_000)
_rules = st.builds(
    lambda factor, low, spread: ResizeRule(
        factor=factor, min_pixels=low * factor**2, max_pixels=low * spread * factor**2
    ),
    st.sampled_from([14, 28, 32]),
    st.integers(4, 64),
    st.integers(4, 256),
)


@pytest.mark.parametrize(
    ("original", "rule", "expected"),
    [
        (Size(1920, 1080), QWEN3, Size(1920, 1088)),
        (Size(1920, 1080), ResizeRule(factor=28, min_pixels=3136, max_pixels=1280 * 784),
         Size(1316, 728)),  # the field's case B001
        (Size(1522, 1022), QWEN2, Size(1204, 812)),
        (Size(1522, 1022), ResizeRule(factor=28, min_pixels=3136, max_pixels=10**7),
         Size(1512, 1008)),  # 36.5 patches round to even
        (Size(32, 32), QWEN3, Size(256, 256)),  # scaled up to the lower bound
        (Size(332, 27), QWEN3, Size(928, 96)),
        (Size(8000, 20000), QWEN3, Size(2560, 6464)),
        (Size(200, 20000), QWEN3, Size(192, 20000)),
        (Size(1280, 800), QWEN3, Size(1280, 800)),
    ],
)  # fmt: skip
def test_known_sizes(original: Size, rule: ResizeRule, expected: Size) -> None:
    assert seen_size(original, rule) == expected


def shown(width: int, height: int, rule: ResizeRule) -> Size:
    """The seen size; a screen so narrow that the rule refuses it is another test's business."""
    try:
        return seen_size(Size(width, height), rule)
    except MemberRejected:
        # Rounding the short side to a patch can take a ratio from 89:13160 to over 200.
        assume(max(width, height) <= 50 * min(width, height))
        raise


@given(_sides, _sides, _rules)
def test_resizing_what_was_resized_changes_nothing(
    width: int, height: int, rule: ResizeRule
) -> None:
    # tests/transforms/engines/test_vllm_engine.py compares with the processor's own function.
    seen = shown(width, height, rule)
    assert seen_size(seen, rule) == seen


@given(_sides, _sides, _rules)
def test_sides_are_multiples_and_area_is_within_bounds(
    width: int, height: int, rule: ResizeRule
) -> None:
    seen = shown(width, height, rule)
    assert seen.width % rule.factor == seen.height % rule.factor == 0
    assert rule.min_pixels <= seen.width * seen.height or _was_shrunk(width, height, rule)
    assert seen.width * seen.height <= rule.max_pixels


def _was_shrunk(width: int, height: int, rule: ResizeRule) -> bool:
    """Rounding down both sides may fall below a lower bound that is close to the upper one."""
    return width * height > rule.min_pixels


@given(st.integers(32, 8000), st.integers(32, 8000))
def test_aspect_is_kept_up_to_one_patch_a_side(width: int, height: int) -> None:
    assume(max(width, height) <= 20 * min(width, height))
    seen = seen_size(Size(width, height), QWEN3)
    # Some one scale explains both sides, each up to a patch.
    wide = [(seen.width + patch) / width for patch in (-QWEN3.factor, QWEN3.factor)]
    high = [(seen.height + patch) / height for patch in (-QWEN3.factor, QWEN3.factor)]
    assert max(wide[0], high[0]) <= min(wide[1], high[1])


@given(_sides, _sides, st.floats(0, 1), st.floats(0, 1))
def test_round_trip_is_within_half_a_seen_pixel(
    width: int, height: int, along: float, down: float
) -> None:
    original = Size(width, height)
    chain = SeenImage.unchanged(original).resized(shown(width, height, QWEN3))
    x, y = chain.to_seen(Point(along * width, down * height))
    rounded = chain.to_original(round(x), round(y))
    back_x, back_y = chain.to_seen(rounded)
    assert abs(back_x - x) <= 0.5 + 1e-6
    assert abs(back_y - y) <= 0.5 + 1e-6


def test_pixels_move_where_the_chain_says() -> None:
    image = Image.new("RGB", (1000, 600), "white")
    image.paste("red", (700, 100, 800, 200))
    resized, chain = seen_image(image, QWEN3)
    assert resized.size == (chain.seen.width, chain.seen.height) == (992, 608)
    x, y = chain.to_seen(Point(750, 150))
    assert resized.getpixel((round(x), round(y))) == (255, 0, 0)
    assert resized.getpixel((round(x) - 60, round(y))) == (255, 255, 255)


def test_without_a_rule_the_image_is_the_same_object() -> None:
    image = Image.new("RGB", (333, 77))
    shown, chain = seen_image(image, None)
    assert shown is image
    assert chain == SeenImage.unchanged(Size(333, 77))


@pytest.mark.parametrize("size", [(1, 300), (200, 40_201), (40_201, 200), (200, 39_800)])
def test_too_narrow_is_refused_not_distorted(size: tuple[int, int]) -> None:
    # 200x39800 is within the ratio, but not once its sides are rounded: 192x39808.
    with pytest.raises(MemberRejected, match="aspect ratio") as caught:
        seen_size(Size(*size), QWEN3)
    assert caught.value.reason == "image_too_narrow"


def test_bounds_without_room_are_a_config_error() -> None:
    rule = ResizeRule(factor=32, min_pixels=65_536, max_pixels=65_536)
    with pytest.raises(ConfigError, match="widen the bounds"):
        seen_size(Size(300, 200), rule)
