"""The committed checkpoint: complete, small, and at one with the code that describes it."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from pipeline.nano import architecture, checkpoint, prompts, tokenizer
from pipeline.nano.checkpoint import ensure_checkpoint, special_ids
from pipeline.nano.labels import LABELS
from schemas.codes import QueryKind
from transforms.compose import prompt_text
from transforms.profiles.load import load_profile

FILES = {
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
}
FOLDER = ensure_checkpoint()
WORDS = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


def test_the_folder_is_complete_and_small() -> None:
    assert {path.name for path in FOLDER.iterdir()} == FILES
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 16 * 2**20


def test_a_package_without_it_says_which_file_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        ensure_checkpoint()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", architecture.model_config(special_ids(WORDS))),
        ("generation_config.json", architecture.generation_config(special_ids(WORDS))),
        ("preprocessor_config.json", architecture.image_processor_config()),
        ("video_preprocessor_config.json", architecture.video_processor_config()),
        ("tokenizer_config.json", tokenizer.tokenizer_config()),
    ],
)
def test_the_files_are_what_the_code_says(file: str, content: architecture.ConfigFile) -> None:
    written = json.loads((FOLDER / file).read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(content))


def test_the_tokenizer_is_what_the_code_builds() -> None:
    assert json.loads(WORDS.to_str()) == json.loads(tokenizer.build_tokenizer().to_str())
    assert WORDS.get_vocab_size() <= architecture.VOCAB_SIZE


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("[]", 1),
        ('[{"bbox_2d":[62,417,1000,0],"label":"button"}]', 10),
        ("¿Dónde está?\nIniciar sesión", 4),
        ("¿Qué botones hay?", 1),
        ("Guardarán", 10),
        ("20245", 5),
        ("日本 🙂", 11),
    ],
)
def test_every_text_comes_back_and_what_is_known_is_short(text: str, pieces: int) -> None:
    ids = WORDS.encode(text).ids
    assert len(ids) == pieces
    assert WORDS.decode(ids) == text


@pytest.mark.parametrize("text", [*LABELS, *map(str, range(0, 1001, 37))])
def test_labels_and_numbers_are_one_token(text: str) -> None:
    assert len(WORDS.encode(text).ids) == 1


def test_the_profile_asks_as_training_did() -> None:
    tasks = load_profile("nano").tasks
    grounding, listing = tasks[QueryKind.GROUNDING], tasks[QueryKind.LOCALIZATION]
    assert prompt_text(grounding, "Guardar") == prompts.ASKING.format(target="Guardar")
    assert prompt_text(listing, "") == prompts.LISTING


def test_the_profile_resizes_as_the_processor_does() -> None:
    rule = load_profile("nano").resize
    assert rule is not None
    assert rule.factor == architecture.PATCH_SIZE * architecture.MERGE_SIZE
    assert (rule.min_pixels, rule.max_pixels) == (architecture.MIN_PIXELS, architecture.MAX_PIXELS)
