"""The nano checkpoint: where the committed one lies, and how a trained model becomes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.nano import architecture, tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import Qwen3VLForConditionalGeneration

FOLDER = Path(__file__).with_name("checkpoint_files")


def ensure_checkpoint() -> Path:
    """The folder of the trained checkpoint, which comes with the package.

    Raises:
        FileNotFoundError: if the package was installed without it.
    """
    if not (FOLDER / "model.safetensors").is_file():
        raise FileNotFoundError(FOLDER / "model.safetensors")
    return FOLDER


def special_ids(words: Tokenizer) -> dict[str, int]:
    """Ids of the special tokens by text."""
    found = {text: words.token_to_id(text) for text in tokenizer.SPECIAL_TOKENS}
    return {text: index for text, index in found.items() if index is not None}


def write_checkpoint(
    folder: Path, words: Tokenizer, model: Qwen3VLForConditionalGeneration
) -> None:
    """Write a plain Qwen3-VL checkpoint in bfloat16: config, tokenizer, processors, weights."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    special = special_ids(words)
    _write_json(folder / "config.json", architecture.model_config(special))
    _write_json(folder / "generation_config.json", architecture.generation_config(special))
    _write_json(folder / "preprocessor_config.json", architecture.image_processor_config())
    _write_json(folder / "video_preprocessor_config.json", architecture.video_processor_config())
    _write_json(folder / "tokenizer_config.json", tokenizer.tokenizer_config())
    words.save(str(folder / "tokenizer.json"))
    weights = {
        name: tensor.detach().cpu().to(torch.bfloat16).contiguous()
        for name, tensor in sorted(model.state_dict().items())
        if name != "lm_head.weight"  # tied to the token embeddings
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _write_json(path: Path, content: architecture.ConfigFile) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
