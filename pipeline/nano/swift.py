"""The forward pass of nano as training needs it: fast on a CPU, on Hugging Face's own parameters.

The modules are those of `Qwen3VLForConditionalGeneration`; only the way through them is ours. The
patch embedding runs as a linear layer (a Conv3d costs a third of a step), images of one size are
one dense batch, deepstack is left out (its outputs are zero in nano), and several questions about
one screen share its tokens in one sequence. A test compares the result with Hugging Face's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from transformers import Qwen3VLForConditionalGeneration

PATCH = 16
MERGE = 2


def patches(pixels: Tensor) -> Tensor:
    """Patches in merge order: (B, H, W, 3) uint8 -> (B, H/16 * W/16, 3 * 16 * 16) in -1..1."""
    batch, height, width, _ = pixels.shape
    rows, columns = height // PATCH // MERGE, width // PATCH // MERGE
    cut = pixels.view(batch, rows, MERGE, PATCH, columns, MERGE, PATCH, 3)
    cut = cut.permute(0, 1, 4, 2, 5, 7, 3, 6).reshape(batch, rows * columns * MERGE * MERGE, -1)
    return cut.float() / 127.5 - 1


def see(model: Qwen3VLForConditionalGeneration, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Look at screens of one size: (B, H, W, 3) uint8.

    Returns:
        the merged tokens (B, H/32 * W/32, hidden) and the patches after the first block
        (B, H/16 * W/16, vision hidden), which training asks for their letters.
    """
    from transformers.vision_utils import (
        get_vision_interpolation_indices_and_weights,
        get_vision_position_ids,
    )

    tower = model.model.visual
    batch, height, width, _ = pixels.shape
    grid = torch.tensor([[1, height // PATCH, width // PATCH]], device=pixels.device)
    index, weight = get_vision_interpolation_indices_and_weights(
        grid, tower.num_grid_per_side, mode="bilinear", align_corners=True, spatial_merge_size=MERGE
    )
    convolution = tower.patch_embed.proj
    kernel = convolution.weight.sum(2).flatten(1)
    hidden = functional.linear(patches(pixels), kernel, convolution.bias)
    hidden = hidden + (tower.pos_embed(index) * weight[:, :, None]).sum(1)
    cos, sin = tower.rotary_pos_emb(hidden, get_vision_position_ids(grid, MERGE))
    early = hidden
    for index, block in enumerate(tower.blocks):
        hidden = _vision_block(block, hidden, cos, sin)
        early = hidden if index == 0 else early
    merged: Tensor = tower.merger(hidden.flatten(0, 1))
    return merged.view(batch, -1, merged.shape[-1]), early


def _rotate(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = states.chunk(2, dim=-1)
    return states * cos + torch.cat((-second, first), dim=-1) * sin


def _vision_block(block: torch.nn.Module, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    batch, length, width = hidden.shape
    attention = block.attn
    states = attention.qkv(block.norm1(hidden)).view(batch, length, 3, attention.num_heads, -1)
    query, key, value = states.permute(2, 0, 3, 1, 4)
    query, key = _rotate(query, cos, sin), _rotate(key, cos, sin)
    mixed = functional.scaled_dot_product_attention(query, key, value)
    hidden = hidden + attention.proj(mixed.transpose(1, 2).reshape(batch, length, width))
    return hidden + block.mlp(block.norm2(hidden))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text side made of a batch.

    Attributes:
        hidden: final hidden states (B, L, hidden).
        layers: hidden states after each layer, before the final norm.
        looks: attention logits (B, 2, L, L) of each layer's guided heads, one for each key-value
            head, -1e9 where a token may not look.
    """

    hidden: Tensor
    layers: list[Tensor]
    looks: list[Tensor]


def read(
    model: Qwen3VLForConditionalGeneration, embedded: Tensor, positions: Tensor, mask: Tensor
) -> Reading:
    """Run the text side.

    Args:
        model: its text side is used.
        embedded: (B, L, hidden) token embeddings with the merged tokens in place.
        positions: (3, B, L) M-RoPE positions.
        mask: (B or 1, 1, L, L), True where a token may look.
    """
    text = model.model.language_model
    cos, sin = text.rotary_emb(embedded, positions)
    cos, sin = cos[:, None], sin[:, None]
    hidden = embedded
    layers, looks = [], []
    for layer in text.layers:
        query, key, value = _heads(layer, hidden, cos, sin)
        guided = query[:, :: query.shape[1] // key.shape[1]]
        scores = guided @ key.transpose(2, 3) * query.shape[-1] ** -0.5
        looks.append(scores.masked_fill(~mask, -1e9))
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, enable_gqa=True
        )
        hidden = hidden + layer.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
        hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        layers.append(hidden)
    return Reading(text.norm(hidden), layers, looks)


def _heads(
    layer: torch.nn.Module, hidden: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    attention = layer.self_attn
    shape = (*hidden.shape[:2], -1, attention.head_dim)
    states = layer.input_layernorm(hidden)
    query = attention.q_norm(attention.q_proj(states).view(shape)).transpose(1, 2)
    key = attention.k_norm(attention.k_proj(states).view(shape)).transpose(1, 2)
    value = attention.v_proj(states).view(shape).transpose(1, 2)
    return _rotate(query, cos, sin), _rotate(key, cos, sin), value
