"""The nano tokenizer: byte-level, with one token for each known label and each number to 1000.

Every text has tokens, byte by byte if need be. What nano knows is short: a coordinate is one
token, so is a label, so is each fixed part of an answer, and nothing is merged by statistics.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.nano.architecture import MAX_POSITIONS, ConfigFile
from pipeline.nano.labels import LABELS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
"""The Qwen names that the processor and the chat template look for."""

ANSWER_PIECES = (
    '[{"bbox_2d":[',
    ',{"bbox_2d":[',
    '],"label":"button"}',
    '],"label":"link"}',
    '],"label":"textbox"}',
    "[]",
)
"""Runs of signs of an answer that are one token each: an answer is then little but its numbers."""

WORDS = (
    *("user", "assistant", "¿Dónde está", "¿Qué botones hay?", "el botón", "Pulse", "Haga clic en"),
    *("en", "de", "la", "el", "Caja"),
)
"""Words of the prompts that are one token each."""

LARGEST_NUMBER = 1000


def _pattern() -> str:
    """Pre-tokens: pieces, words and labels that are one token, a number, a word, or one sign."""
    whole = sorted((*ANSWER_PIECES, *WORDS, *LABELS), key=len, reverse=True)
    known = "|".join(
        re.escape(text) + (r"(?!\p{L})" if text[-1].isalpha() else "") for text in whole
    )
    return known + r"|\p{N}{1,4}|\p{L}+|[\s\S]"


CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string -%}
{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if 'image' in part or part['type'] in ('image', 'image_url') -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- elif part['type'] == 'video' -%}
<|vision_start|><|video_pad|><|vision_end|>
{%- elif 'text' in part -%}
{{ part['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""
"""ChatML, as the Qwen family speaks it; images stand where they are in the message."""


def build_tokenizer() -> Tokenizer:
    """The tokenizer: bytes, and one token for each known label, number, word and answer piece."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
    )

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    numbers = tuple(str(number) for number in range(LARGEST_NUMBER + 1))
    texts = (*LABELS, *numbers, *ANSWER_PIECES, *WORDS)
    spelled = ["".join(part for part, _ in byte_level.pre_tokenize_str(text)) for text in texts]
    names = dict.fromkeys([*SPECIAL_TOKENS, *sorted(byte_level.alphabet()), *spelled])
    vocabulary = {name: index for index, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_pattern()), behavior="isolated"), byte_level]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL_TOKENS])
    return tokenizer


def tokenizer_config() -> ConfigFile:
    """The content of `tokenizer_config.json`."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "processor_class": "Qwen3VLProcessor",
        "model_max_length": MAX_POSITIONS,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
