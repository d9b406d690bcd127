"""Reading a loaded processor's own parameters, whatever object holds them."""

from types import SimpleNamespace

import pytest

from schemas.resize import ResizeRule, TileRule
from transforms.engines.vllm_processor import processor_rule

QWEN = SimpleNamespace(
    image_processor=SimpleNamespace(
        patch_size=16, merge_size=2, size=SimpleNamespace(shortest_edge=65_536, longest_edge=2**24)
    )
)
OLD_QWEN = SimpleNamespace(
    patch_size=14, merge_size=2, size={"shortest_edge": 3_136, "longest_edge": 12_845_056}
)
NEMOTRON = SimpleNamespace(
    image_size=512, max_num_tiles=12, use_thumbnail=True, num_image_token=256, dynamic_tiler=None
)
INTERNVL = SimpleNamespace(
    image_processor=SimpleNamespace(
        image_size=448, max_dynamic_patch=12, dynamic_image_size=True, use_thumbnail=True
    )
)


def test_smart_resizes() -> None:
    assert processor_rule(QWEN, {}) == ResizeRule(factor=32, min_pixels=65_536, max_pixels=2**24)
    expected = ResizeRule(factor=28, min_pixels=3_136, max_pixels=12_845_056)
    assert processor_rule(OLD_QWEN, {}) == expected


def test_tiles() -> None:
    assert processor_rule(NEMOTRON, {}) == TileRule(kind="tiles", tile=512, max_tiles=12)
    assert processor_rule(INTERNVL, {}) == TileRule(kind="tiles", tile=448, max_tiles=12)
    fixed = SimpleNamespace(**{**vars(INTERNVL.image_processor), "dynamic_image_size": False})
    assert processor_rule(fixed, {}) == TileRule(kind="tiles", tile=448, max_tiles=1)


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [
        ({"max_pixels": 1_003_520}, 65_536, 1_003_520),
        ({"min_pixels": 1_024}, 1_024, 2**24),
        ({"size": {"shortest_edge": 4_096, "longest_edge": 2_000_000}}, 4_096, 2_000_000),
    ],
)
def test_the_engines_arguments_come_on_top(changes: dict[str, object], low: int, high: int) -> None:
    assert processor_rule(QWEN, changes) == ResizeRule(factor=32, min_pixels=low, max_pixels=high)


def test_fewer_tiles_on_demand() -> None:
    found = processor_rule(NEMOTRON, {"max_num_tiles": 6})
    assert isinstance(found, TileRule)
    assert found.max_tiles == 6


@pytest.mark.parametrize(
    "processor",
    [
        SimpleNamespace(),
        SimpleNamespace(patch_size=16, merge_size=2),
        SimpleNamespace(patch_size=16, merge_size=2, size={"height": 224, "width": 224}),
        SimpleNamespace(image_size=512),
        SimpleNamespace(image_size=512, max_num_tiles=12, dynamic_tiler=object()),
        SimpleNamespace(patch_size="16", merge_size=2, min_pixels=4, max_pixels=9),
    ],
)
def test_what_cannot_be_read_is_not_guessed(processor: object) -> None:
    assert processor_rule(processor, {}) is None
