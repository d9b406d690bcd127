"""Random weights for the nano checkpoint, drawn without PyTorch.

The names and shapes are those of `Qwen3VLForConditionalGeneration` in transformers 5.19 for the
config that `architecture` writes; a test compares them with the class itself.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np

from pipeline.nano import architecture as shape

SEED = 20_240
INIT_STD = 0.02

Shape: TypeAlias = "tuple[int, ...]"
Weight: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"


def random_weights() -> dict[str, Weight]:
    """A float32 array for each parameter, the same ones every time.

    Each has a generator of its own, seeded by its name, so that none depends on the others;
    NumPy's generators promise the same stream on every machine.
    """
    return {name: _draw(name, size) for name, size in sorted(parameter_shapes().items())}


def parameter_shapes() -> dict[str, Shape]:
    """Shape by parameter name; the output head is tied to the embedding and not stored."""
    shapes: dict[str, Shape] = {
        "model.language_model.embed_tokens.weight": (shape.VOCAB_SIZE, shape.TEXT_WIDTH),
        "model.language_model.norm.weight": (shape.TEXT_WIDTH,),
    }
    for layer in range(shape.TEXT_LAYERS):
        shapes |= _under(f"model.language_model.layers.{layer}", _text_layer())
    shapes |= _under("model.visual", _vision_ends())
    for layer in range(shape.VISION_LAYERS):
        shapes |= _under(f"model.visual.blocks.{layer}", _vision_layer())
    for index in range(len(shape.DEEPSTACK_LAYERS)):
        merger = _merger(norm_width=shape.VISION_WIDTH * shape.MERGE_SIZE**2)
        shapes |= _under(f"model.visual.deepstack_merger_list.{index}", merger)
    return shapes


def _under(prefix: str, shapes: dict[str, Shape]) -> dict[str, Shape]:
    return {f"{prefix}.{name}": size for name, size in shapes.items()}


def _text_layer() -> dict[str, Shape]:
    width, inner, head = shape.TEXT_WIDTH, shape.TEXT_INNER, shape.HEAD_WIDTH
    return {
        "input_layernorm.weight": (width,),
        "post_attention_layernorm.weight": (width,),
        "self_attn.q_proj.weight": (shape.HEADS * head, width),
        "self_attn.k_proj.weight": (shape.KEY_VALUE_HEADS * head, width),
        "self_attn.v_proj.weight": (shape.KEY_VALUE_HEADS * head, width),
        "self_attn.o_proj.weight": (width, shape.HEADS * head),
        "self_attn.q_norm.weight": (head,),
        "self_attn.k_norm.weight": (head,),
        "mlp.gate_proj.weight": (inner, width),
        "mlp.up_proj.weight": (inner, width),
        "mlp.down_proj.weight": (width, inner),
    }


def _vision_ends() -> dict[str, Shape]:
    width, patch = shape.VISION_WIDTH, shape.PATCH_SIZE
    kernel = (width, shape.CHANNELS, shape.TEMPORAL_PATCH_SIZE, patch, patch)
    return {
        "patch_embed.proj.weight": kernel,
        "patch_embed.proj.bias": (width,),
        "pos_embed.weight": (shape.VISION_POSITIONS, width),
        **_under("merger", _merger(norm_width=width)),
    }


def _vision_layer() -> dict[str, Shape]:
    width, inner = shape.VISION_WIDTH, shape.VISION_INNER
    return {
        **_linear("attn.qkv", width, 3 * width),
        **_linear("attn.proj", width, width),
        **_linear("mlp.linear_fc1", width, inner),
        **_linear("mlp.linear_fc2", inner, width),
        **{f"norm{index}.{part}": (width,) for index in (1, 2) for part in ("weight", "bias")},
    }


def _merger(norm_width: int) -> dict[str, Shape]:
    merged = shape.VISION_WIDTH * shape.MERGE_SIZE**2
    return {
        "norm.weight": (norm_width,),
        "norm.bias": (norm_width,),
        **_linear("linear_fc1", merged, merged),
        **_linear("linear_fc2", merged, shape.TEXT_WIDTH),
    }


def _linear(name: str, wide_in: int, wide_out: int) -> dict[str, Shape]:
    return {f"{name}.weight": (wide_out, wide_in), f"{name}.bias": (wide_out,)}


def _draw(name: str, size: Shape) -> Weight:
    if name.endswith(".bias"):
        return np.zeros(size, dtype=np.float32)
    if "norm" in name.split(".")[-2]:
        return np.ones(size, dtype=np.float32)
    digest = hashlib.sha256(f"{SEED}:{name}".encode()).digest()
    generator = np.random.Generator(np.random.Philox(int.from_bytes(digest[:8], "big")))
    return generator.standard_normal(size, dtype=np.float32) * np.float32(INIT_STD)
