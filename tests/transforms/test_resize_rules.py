"""Tiles and canvas: what the model sees, and the way back, for any size of screen."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel, ValidationError

from schemas.errors import MemberRejected
from schemas.geometry import (
    FrameKind,
    Point,
    SeenImage,
    Size,
    frame_extent,
    point_from_frame,
    point_to_frame,
)
from schemas.resize import AnyResizeRule, CanvasRule, ResizeRule, TileRule
from transforms.profiles.load import list_profiles, load_profile
from transforms.resize import image_tokens, seen_chain, seen_image, seen_size

NEMOTRON = TileRule(kind="tiles", tile=512, max_tiles=12)
INTERNVL = TileRule(kind="tiles", tile=448, max_tiles=12)
PHI_GROUND = CanvasRule(kind="canvas", width=1008, height=672)
QWEN25 = ResizeRule(factor=28, min_pixels=3_136, max_pixels=12_845_056)
QWEN3 = ResizeRule(factor=32, min_pixels=65_536, max_pixels=16_777_216)
HOLO1 = ResizeRule(factor=28, min_pixels=3_136, max_pixels=1_003_520)

RULES: dict[str, AnyResizeRule | None] = {
    "none": None,
    "smart-28": QWEN25,
    "smart-32": QWEN3,
    "holo1": HOLO1,
    "tiles-512": NEMOTRON,
    "tiles-448": INTERNVL,
    "canvas": PHI_GROUND,
    **{f"profile {name}": load_profile(name).resize for name in list_profiles()},
}
DISTINCT = {repr(rule): name for name, rule in reversed(RULES.items())}.values()
"""One name for each different rule."""

SIZES = st.builds(Size, st.integers(32, 8_000), st.integers(32, 20_000))


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ((1920, 1080), (2048, 1024)),
        ((2560, 1440), (2048, 1024)),
        ((3840, 2160), (2048, 1024)),
        ((1280, 720), (1024, 512)),
        ((1366, 768), (2048, 1024)),
        ((1440, 900), (1536, 1024)),
        ((1080, 2400), (1024, 2560)),
        ((32, 32), (512, 512)),
        ((32, 20_000), (512, 6144)),
    ],
)
def test_nemotron_grids(original: tuple[int, int], expected: tuple[int, int]) -> None:
    assert seen_size(Size(*original), NEMOTRON) == Size(*expected)


@pytest.mark.parametrize("rule", [NEMOTRON, INTERNVL], ids=["512", "448"])
def test_the_grid_is_the_one_of_the_engine(rule: TileRule) -> None:
    import vllm.transformers_utils.processors.internvl as processors

    ratios = processors.get_internvl_target_ratios(1, rule.max_tiles)
    sides = [*range(32, 4000, 97), 448, 512, 896, 1024, 1792, 2048, 8000, 20_000]
    for width, height in itertools.product(sides, sides):
        blocks, *target = processors.calculate_internvl_targets(
            orig_width=width,
            orig_height=height,
            target_ratios=ratios,
            image_size=rule.tile,
            use_thumbnail=rule.thumbnail,
        )
        seen = seen_size(Size(width, height), rule)
        assert [seen.width, seen.height] == target, (width, height)
        assert image_tokens(seen, rule) == blocks * 256, (width, height)


@given(SIZES, st.sampled_from([NEMOTRON, INTERNVL, PHI_GROUND]))
def test_the_processor_leaves_alone_what_we_show(size: Size, rule: AnyResizeRule) -> None:
    shown = seen_size(size, rule)
    assert seen_size(shown, rule) == shown
    again = seen_chain(SeenImage.unchanged(shown), rule)
    assert (again.scale_x, again.scale_y, again.offset_x, again.offset_y) == (1, 1, 0, 0)


@pytest.mark.parametrize("name", RULES)
@given(size=SIZES, along=st.floats(0, 1), down=st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_every_frame_comes_back_within_half_a_seen_pixel(
    name: str, size: Size, along: float, down: float
) -> None:
    try:
        chain = seen_chain(SeenImage.unchanged(size), RULES[name])
    except MemberRejected:
        assert max(size.width, size.height) > 100 * min(size.width, size.height)
        return
    point = Point(along * size.width, down * size.height)
    x, y = chain.to_seen(point)
    for frame in FrameKind:
        back = point_from_frame(*point_to_frame(point, frame, chain), frame, chain)
        assert chain.to_seen(back) == pytest.approx((x, y), abs=1e-6)
    rounded = point_from_frame(round(x), round(y), FrameKind.SEEN_PX, chain)
    back_x, back_y = chain.to_seen(rounded)
    assert abs(back_x - x) <= 0.5 + 1e-6
    assert abs(back_y - y) <= 0.5 + 1e-6


@pytest.mark.parametrize("name", RULES)
@given(size=SIZES)
@settings(max_examples=20, deadline=None)
def test_the_original_lies_inside_what_is_seen(name: str, size: Size) -> None:
    try:
        chain = seen_chain(SeenImage.unchanged(size), RULES[name])
    except MemberRejected:
        return
    left, top = chain.to_seen(Point(0, 0))
    right, bottom = chain.to_seen(Point(size.width, size.height))
    assert 0 <= left < right <= chain.seen.width + 1e-6
    assert 0 <= top < bottom <= chain.seen.height + 1e-6


def painted(size: tuple[int, int], spots: list[tuple[int, int]]) -> Image.Image:
    """A white screen with red squares of 2 % of each side around `spots`."""
    image = Image.new("RGB", size, "white")
    half_x, half_y = max(6, size[0] // 50), max(6, size[1] // 50)
    for x, y in spots:
        image.paste((255, 0, 0), (x - half_x, y - half_y, x + half_x, y + half_y))
    return image


def red_centre(image: Image.Image, box: tuple[int, int, int, int]) -> tuple[float, float]:
    """Centre of the red pixels inside `box`, in pixels of `image`."""
    mask = image.crop(box).split()[1].point(lambda green: 255 if green < 128 else 0)
    found = mask.getbbox()
    assert found is not None
    return box[0] + (found[0] + found[2]) / 2, box[1] + (found[1] + found[3]) / 2


@pytest.mark.parametrize("name", DISTINCT)
@pytest.mark.parametrize("size", [(1920, 1080), (640, 400), (390, 1844), (1366, 768), (2400, 300)])
def test_painted_markers_are_where_the_chain_says(name: str, size: tuple[int, int]) -> None:
    width, height = size
    spots = [
        (width // 8, height // 8),
        (width * 7 // 8, height // 8),
        (width // 8, height * 7 // 8),
        (width * 7 // 8, height * 7 // 8),
    ]
    shown, chain = seen_image(painted(size, spots), RULES[name])
    assert shown.size == (chain.seen.width, chain.seen.height)
    middle_x, middle_y = map(round, chain.to_seen(Point(width / 2, height / 2)))
    corners = [
        (0, 0, middle_x, middle_y),
        (middle_x, 0, shown.width, middle_y),
        (0, middle_y, middle_x, shown.height),
        (middle_x, middle_y, shown.width, shown.height),
    ]
    for spot, corner in zip(spots, corners, strict=True):
        seen = red_centre(shown, corner)
        assert seen == pytest.approx(chain.to_seen(Point(*spot)), abs=1.0)
        # Within a pixel of whichever of the two images is coarser.
        coarse = max(1.0, 1 / chain.scale_x, 1 / chain.scale_y)
        back = chain.to_original(*seen)
        assert (back.x, back.y) == pytest.approx(spot, abs=coarse)


def test_the_canvas_is_filled_and_the_image_sits_top_left() -> None:
    shown, chain = seen_image(Image.new("RGB", (2000, 500), "navy"), PHI_GROUND)
    assert shown.size == (1008, 672)
    assert shown.getpixel((1007, 251)) == (0, 0, 128)
    assert shown.getpixel((0, 252)) == (255, 255, 255)
    assert (chain.offset_x, chain.offset_y) == (0, 0)
    # 1000 is the far edge of the canvas, not of the screen.
    assert point_from_frame(500, 250, FrameKind.NORM_1000, chain) == Point(1000, 500 * 168 / 252)


def test_a_small_image_is_scaled_up_to_the_canvas() -> None:
    _, chain = seen_image(Image.new("RGB", (504, 100)), PHI_GROUND)
    assert (chain.scale_x, chain.scale_y) == (2.0, 2.0)


def test_two_axes_have_two_scales() -> None:
    _, chain = seen_image(Image.new("RGB", (1280, 720)), NEMOTRON)
    assert chain.seen == Size(1024, 512)
    assert point_from_frame(512, 256, FrameKind.SEEN_PX, chain) == Point(640, 360)
    assert point_from_frame(1024, 512, FrameKind.SEEN_PX, chain) == Point(1280, 720)


def test_two_resizes_are_undone_as_one() -> None:
    # Our own step first (3840x2160 to 1920x1080), then the processor's (to 1316x728).
    ours = SeenImage.unchanged(Size(3840, 2160)).resized(Size(1920, 1080))
    whole = seen_chain(ours, ResizeRule(factor=28, min_pixels=3136, max_pixels=1280 * 784))
    assert whole.seen == Size(1316, 728)
    assert point_from_frame(658, 364, FrameKind.SEEN_PX, whole) == Point(1920, 1080)


def test_the_last_of_a_thousand_steps_is_999() -> None:
    chain = SeenImage.unchanged(Size(1998, 999))
    assert frame_extent(FrameKind.NORM_999, chain) == (999.0, 999.0)
    assert point_from_frame(999, 999, FrameKind.NORM_999, chain) == Point(1998, 999)


class Holder(BaseModel):
    resize: AnyResizeRule | None = None


def test_a_rule_without_a_kind_is_a_smart_resize() -> None:
    table = {"factor": 28, "min_pixels": 1, "max_pixels": 9}
    assert Holder(resize=table).resize == ResizeRule(factor=28, min_pixels=1, max_pixels=9)


def test_rules_come_back_from_json() -> None:
    for rule in RULES.values():
        held = Holder(resize=rule)
        assert Holder.model_validate_json(held.model_dump_json()) == held


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "tiles", "tile": 512, "max_tiles": 12, "keeps_aspect": True},
        {"kind": "tiles", "tile": 0, "max_tiles": 12},
        {"kind": "canvas", "width": 10, "height": 10, "fill": "white"},
        {"kind": "square", "side": 10},
        {"kind": "smart", "factor": 28, "min_pixels": 10, "max_pixels": 9},
    ],
)
def test_wrong_rules_are_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Holder(resize=table)
