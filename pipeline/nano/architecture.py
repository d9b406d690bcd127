"""The shape of the nano checkpoint: a Qwen3-VL of about 2.3 million parameters.

Only the shape is here: `model` says what training starts from, `checkpoint` where the result lies,
and the tokenizer is built by `tokenizer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

VOCAB_SIZE = 1408
"""Rows of the embedding; the tokenizer uses at most as many, the rest is padding."""

TEXT_WIDTH = 128
TEXT_INNER = 256
TEXT_LAYERS = 4
HEADS = 4
KEY_VALUE_HEADS = 2
HEAD_WIDTH = 64

VISION_WIDTH = 128
VISION_INNER = 256
VISION_LAYERS = 3
VISION_HEADS = 4
VISION_POSITIONS = 24 * 24
DEEPSTACK_LAYERS = (0,)

CHANNELS = 3
PATCH_SIZE = 16
MERGE_SIZE = 2
TEMPORAL_PATCH_SIZE = 2
MIN_PIXELS = 32 * 32 * 32
MAX_PIXELS = 512 * 32 * 32
"""Bounds of the processor; `transforms/profiles/nano.toml` repeats them and a test compares."""

MAX_POSITIONS = 8192

ConfigValue: TypeAlias = "bool | int | float | str | list[ConfigValue] | Mapping[str, ConfigValue]"
ConfigFile: TypeAlias = "dict[str, ConfigValue]"


def model_config(special: Mapping[str, int]) -> ConfigFile:
    """The content of `config.json`.

    Args:
        special: ids of the tokenizer's special tokens by text.
    """
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
        "image_token_id": special["<|image_pad|>"],
        "video_token_id": special["<|video_pad|>"],
        "vision_start_token_id": special["<|vision_start|>"],
        "vision_end_token_id": special["<|vision_end|>"],
        "text_config": _text_config(special),
        "vision_config": _vision_config(),
    }


def _text_config(special: Mapping[str, int]) -> ConfigFile:
    rope: ConfigFile = {
        "rope_type": "default",
        "rope_theta": 5_000_000.0,
        "mrope_interleaved": True,
        "mrope_section": [12, 10, 10],  # sums to half of head_dim
    }
    return {
        "model_type": "qwen3_vl_text",
        "dtype": "bfloat16",
        "vocab_size": VOCAB_SIZE,
        "hidden_size": TEXT_WIDTH,
        "intermediate_size": TEXT_INNER,
        "num_hidden_layers": TEXT_LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_VALUE_HEADS,
        "head_dim": HEAD_WIDTH,
        "hidden_act": "silu",
        "max_position_embeddings": MAX_POSITIONS,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "rope_parameters": rope,
        "bos_token_id": special["<|endoftext|>"],
        "eos_token_id": special["<|im_end|>"],
    }


def _vision_config() -> ConfigFile:
    return {
        "model_type": "qwen3_vl_vision",
        "depth": VISION_LAYERS,
        "hidden_size": VISION_WIDTH,
        "intermediate_size": VISION_INNER,
        "num_heads": VISION_HEADS,
        "hidden_act": "gelu_pytorch_tanh",
        "in_channels": CHANNELS,
        "patch_size": PATCH_SIZE,
        "spatial_merge_size": MERGE_SIZE,
        "temporal_patch_size": TEMPORAL_PATCH_SIZE,
        "out_hidden_size": TEXT_WIDTH,
        "num_position_embeddings": VISION_POSITIONS,
        "deepstack_visual_indexes": list(DEEPSTACK_LAYERS),
    }


def generation_config(special: Mapping[str, int]) -> ConfigFile:
    """The content of `generation_config.json`: greedy, ends at `<|im_end|>`."""
    return {
        "bos_token_id": special["<|endoftext|>"],
        "pad_token_id": special["<|endoftext|>"],
        "eos_token_id": [special["<|im_end|>"], special["<|endoftext|>"]],
        "do_sample": False,
    }


def image_processor_config() -> ConfigFile:
    """The content of `preprocessor_config.json`."""
    return {**_pixels(), "image_processor_type": "Qwen2VLImageProcessorFast"}


def video_processor_config() -> ConfigFile:
    """The content of `video_preprocessor_config.json`; never used, but the loader wants it."""
    return {**_pixels(), "video_processor_type": "Qwen3VLVideoProcessor"}


def _pixels() -> ConfigFile:
    return {
        "processor_class": "Qwen3VLProcessor",
        "size": {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS},
        "patch_size": PATCH_SIZE,
        "temporal_patch_size": TEMPORAL_PATCH_SIZE,
        "merge_size": MERGE_SIZE,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
