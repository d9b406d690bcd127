"""What the loaded image processor does to an image, read from its own parameters.

The names are those of transformers 5.19 (`Qwen2VLImageProcessor`: `size`, `patch_size`,
`merge_size`) and of vLLM 0.32's own processors (`processors/internvl.py`: `image_size`,
`max_dynamic_patch`; `processors/nano_nemotron_vl.py`: `image_size`, `max_num_tiles`). A processor
that has none of them is not guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.resize import AnyResizeRule, ResizeRule, TileRule

_TOKEN_NAMES = ("image_token_id", "ctx_image_token_id")
_TILE_LIMITS = ("max_num_tiles", "max_dynamic_patch")


def loaded_processor(llm: Any) -> tuple[object, Mapping[str, object]]:
    """The image processor of a `vllm.LLM`, None where it has none, and what it is called with."""
    found = llm.renderer.mm_processor
    if found is None:
        return None, {}
    config = llm.llm_engine.vllm_config.model_config.multimodal_config
    changes = config.mm_processor_kwargs if config is not None else None
    return found.info.get_hf_processor(), changes or {}


def image_token_id(processor: object) -> int | None:
    """Id of the token that stands for a piece of an image in the prompt, or None."""
    for name in _TOKEN_NAMES:
        token = getattr(processor, name, None)
        if isinstance(token, int):
            return token
    return None


def processor_rule(processor: object, changes: Mapping[str, object]) -> AnyResizeRule | None:
    """The rule that a processor object's parameters state.

    Args:
        processor: a loaded processor, or one with its image processor inside.
        changes: keyword arguments the engine calls it with, over its own.
    """
    inner = getattr(processor, "image_processor", None) or processor
    return _smart(inner, changes) or _tiles(inner, changes)


def _smart(processor: object, changes: Mapping[str, object]) -> ResizeRule | None:
    patch, merge = _number(processor, "patch_size"), _number(processor, "merge_size")
    least = _number(changes, "min_pixels") or _edge(changes, "shortest_edge")
    most = _number(changes, "max_pixels") or _edge(changes, "longest_edge")
    least = least or _edge(processor, "shortest_edge") or _number(processor, "min_pixels")
    most = most or _edge(processor, "longest_edge") or _number(processor, "max_pixels")
    if patch is None or merge is None or least is None or most is None or least > most:
        return None
    return ResizeRule(factor=patch * merge, min_pixels=least, max_pixels=most)


def _tiles(processor: object, changes: Mapping[str, object]) -> TileRule | None:
    side = _number(processor, "image_size")
    limits = [_number(place, name) for place in (changes, processor) for name in _TILE_LIMITS]
    most = next((limit for limit in limits if limit is not None), None)
    fixed = not getattr(processor, "dynamic_image_size", True)
    if side is None or most is None or getattr(processor, "dynamic_tiler", None) is not None:
        return None
    thumbnail = bool(getattr(processor, "use_thumbnail", False))
    tokens = _number(processor, "num_image_token") or TileRule.model_fields["tile_tokens"].default
    return TileRule(
        kind="tiles",
        tile=side,
        max_tiles=1 if fixed else most,
        thumbnail=thumbnail,
        tile_tokens=tokens,
    )


def _number(place: object, name: str) -> int | None:
    """An attribute or an entry, if it is a whole number above 0."""
    value = place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _edge(place: object, name: str) -> int | None:
    """A bound inside `size`, which transformers keeps as a mapping or as an object."""
    size = place.get("size") if isinstance(place, Mapping) else getattr(place, "size", None)
    return None if size is None else _number(size, name)
