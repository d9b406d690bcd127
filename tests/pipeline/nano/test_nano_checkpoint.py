"""The nano checkpoint: the same bytes everywhere, made once, complete even when two make it."""

import hashlib
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Never

import numpy as np
import pytest
from tokenizers import Tokenizer

from pipeline.nano import architecture, checkpoint, tokenizer, weights
from pipeline.nano.checkpoint import ensure_checkpoint, write_checkpoint
from schemas.codes import QueryKind
from transforms.profiles.load import load_profile

FILES = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_checkpoint(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def learned(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_same_bytes_twice(folder: Path, tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    assert digests(tmp_path) == digests(folder)
    assert set(digests(folder)) == FILES


def test_golden_weights(folder: Path) -> None:
    # The revision that rows carry; it changes with NANO_VERSION only.
    assert folder.name == "nano-v1"
    assert (
        digests(folder)["model.safetensors"]
        == "2238fb701386419dcbac3536e20022ca3a13bb1aa68b51ef4c18f66d16cc2056"
    )


def test_a_folder_that_is_there_is_left_alone(folder: Path) -> None:
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert ensure_checkpoint(folder.parent) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_two_processes_at_once_leave_one_whole_folder(tmp_path: Path, folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        made = set(pool.map(ensure_checkpoint, [tmp_path] * 2))
    assert made == {tmp_path / "nano-v1"}
    assert [path.name for path in tmp_path.iterdir()] == ["nano-v1"]  # no drafts left
    assert digests(tmp_path / "nano-v1") == digests(folder)


def test_losing_the_race_uses_what_the_winner_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def write_and_lose(draft: Path) -> None:
        write_checkpoint(draft)
        write_checkpoint(_made(tmp_path / "nano-v1"))

    monkeypatch.setattr(checkpoint, "write_checkpoint", write_and_lose)
    assert digests(ensure_checkpoint(tmp_path)) == digests(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["nano-v1"]


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(draft: Path) -> Never:
        (draft / "config.json").write_text("{")
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint, "write_checkpoint", fail)
    with pytest.raises(OSError, match="no space left"):
        ensure_checkpoint(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_about_a_million_parameters() -> None:
    count = sum(int(np.prod(size)) for size in weights.parameter_shapes().values())
    assert count == 975_104


@pytest.mark.parametrize(
    "text",
    [
        "Haga clic en «Guardar»",
        "ñandú, pingüino",
        "日本語 🙂",
        "a\n\tb  c",
        '[{"bbox_2d":[0,9,99,1000]}]',
    ],
)
def test_every_text_comes_back(learned: Tokenizer, text: str) -> None:
    assert learned.decode(learned.encode(text).ids) == text


def test_digits_are_single_tokens(learned: Tokenizer) -> None:
    assert learned.encode("1000,345").tokens == ["1", "0", "0", "0", ",", "3", "4", "5"]


def test_decomposed_accents_are_composed(learned: Tokenizer) -> None:
    assert learned.encode("boto\u0301n").ids == learned.encode("botón").ids


def test_special_tokens_are_single_and_the_vocabulary_fits(learned: Tokenizer) -> None:
    for text in tokenizer.SPECIAL_TOKENS:
        assert learned.encode(text).tokens == [text]
    assert learned.get_vocab_size() <= architecture.VOCAB_SIZE


def test_profile_and_processor_agree_on_the_resize(folder: Path) -> None:
    rule = load_profile("nano").resize
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    assert rule.factor == processor["patch_size"] * processor["merge_size"]
    assert rule.min_pixels == processor["size"]["shortest_edge"]
    assert rule.max_pixels == processor["size"]["longest_edge"]


def test_the_longest_answer_fits_its_token_limit() -> None:
    # A token is at least one byte, so bytes bound tokens; one more ends the answer.
    item = '{"bbox_2d":[1000,1000,1000,1000],"label":"checkbox"}'
    tasks = load_profile("nano").tasks
    assert len(f"[{item}]") + 1 <= tasks[QueryKind.GROUNDING].max_tokens
    twelve = "[" + ",".join([item] * 12) + "]"
    assert len(twelve) + 1 <= tasks[QueryKind.LOCALIZATION].max_tokens
