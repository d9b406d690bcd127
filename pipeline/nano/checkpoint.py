"""Write the nano checkpoint into the user's cache folder, once.

Its weights are random, so it answers nonsense; it exists so that the real loading, prompting,
batching, decoding and parsing code can run anywhere. The bytes are the same every time.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from pipeline.nano import architecture, tokenizer
from pipeline.nano.weights import random_weights

NANO_VERSION = "1"
"""Part of the folder name: grows whenever the bytes of the checkpoint change."""


def ensure_checkpoint(cache_dir: Path | None = None) -> Path:
    """The folder of the nano checkpoint, made first if it is not there.

    Two processes may call this at once: each writes a folder of its own and one rename wins.

    Args:
        cache_dir: where the folder lives; default: the user's cache folder for `pantalla`.

    Raises:
        OSError: if the cache folder cannot be written.
    """
    parent = _user_cache() if cache_dir is None else cache_dir
    target = parent / f"nano-v{NANO_VERSION}"
    if target.is_dir():
        return target
    parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".nano-v{NANO_VERSION}-", dir=parent))
    try:
        write_checkpoint(draft)
        _publish(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _user_cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("pantalla"))


def _publish(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`; another process may have got there first, with equal bytes."""
    draft.chmod(0o755)
    try:
        draft.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def write_checkpoint(folder: Path) -> None:
    """Write config, tokenizer and random weights of the nano model into `folder`."""
    model_tokenizer = tokenizer.build_tokenizer()
    special = {
        text: index
        for text in tokenizer.SPECIAL_TOKENS
        if (index := model_tokenizer.token_to_id(text)) is not None
    }
    _write_json(folder / "config.json", architecture.model_config(special))
    _write_json(folder / "generation_config.json", architecture.generation_config(special))
    _write_json(folder / "preprocessor_config.json", architecture.image_processor_config())
    _write_json(folder / "video_preprocessor_config.json", architecture.video_processor_config())
    _write_json(folder / "tokenizer_config.json", tokenizer.tokenizer_config())
    model_tokenizer.save(str(folder / "tokenizer.json"))
    _write_weights(folder / "model.safetensors")


def _write_json(path: Path, content: architecture.ConfigFile) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def _write_weights(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file(random_weights(), path, metadata={"format": "pt"})
    with path.open("rb") as file:
        os.fsync(file.fileno())
