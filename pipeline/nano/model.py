"""Make the nano model that training starts from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pipeline.nano import architecture, tokenizer
from pipeline.nano.checkpoint import special_ids

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import Qwen3VLForConditionalGeneration

NUMBER_WAVES = 32
"""Frequencies in the first code of a number: from half a turn to 40 turns in 0-1000."""


def new_model(words: Tokenizer, seed: int = 0) -> Qwen3VLForConditionalGeneration:
    """A fresh model: random, but for codes that give numbers and positions a metric to start from.

    Numbers that are near start with embeddings that are near, so a coordinate between two that
    were trained is not a stranger; likewise the vision tower's grid of positions.
    """
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    torch.manual_seed(seed)
    config = Qwen3VLConfig(**architecture.model_config(special_ids(words)))
    model = Qwen3VLForConditionalGeneration(config).float()
    with torch.no_grad():
        _start_embeddings(model, words)
        _start_vision(model)
    return model


def _waves(values: Tensor, count: int, slowest: float, fastest: float) -> Tensor:
    """Cosines and sines of values in 0..1: (N,) -> (N, 2 * count)."""
    turns = slowest * (fastest / slowest) ** (torch.arange(count) / (count - 1))
    angle = 2 * math.pi * values[:, None] * turns
    return torch.cat([angle.cos(), angle.sin()], dim=1)


def _start_embeddings(model: Qwen3VLForConditionalGeneration, words: Tokenizer) -> None:
    table = model.model.language_model.embed_tokens.weight
    table.normal_(std=0.1)
    ids = [words.token_to_id(str(number)) for number in range(tokenizer.LARGEST_NUMBER + 1)]
    values = torch.arange(len(ids)) / tokenizer.LARGEST_NUMBER
    codes = torch.randn(len(ids), table.shape[1]) * 0.02
    codes[:, : 2 * NUMBER_WAVES] += 0.14 * _waves(values, NUMBER_WAVES, 0.5, 40.0)
    turn = torch.linalg.qr(torch.randn(table.shape[1], table.shape[1])).Q
    table[ids] = codes @ turn


def _start_vision(model: Qwen3VLForConditionalGeneration) -> None:
    tower = model.model.visual
    side = tower.num_grid_per_side
    width = tower.pos_embed.weight.shape[1]
    line = _waves(torch.linspace(0, 1, side), width // 4, 0.25, 8.0)
    grid = torch.cat(
        [line[:, None].expand(-1, side, -1), line[None].expand(side, -1, -1)], dim=2
    ).reshape(side * side, -1)
    tower.pos_embed.weight.copy_(0.3 * grid)
    torch.nn.init.normal_(tower.patch_embed.proj.weight, std=0.02)
    for module in tower.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.xavier_uniform_(module.weight)
            torch.nn.init.zeros_(module.bias)
    for layer in model.model.language_model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            torch.nn.init.xavier_uniform_(getattr(layer.self_attn, name).weight)
        for name in ("gate_proj", "up_proj", "down_proj"):
            torch.nn.init.xavier_uniform_(getattr(layer.mlp, name).weight)
    for merger in tower.deepstack_merger_list:
        torch.nn.init.zeros_(merger.linear_fc2.weight)
        torch.nn.init.zeros_(merger.linear_fc2.bias)
        merger.requires_grad_(requires_grad=False)
