"""A local checkpoint's revision is a hash of what it is made of."""

from pathlib import Path

import pytest

from schemas.errors import ConfigError
from transforms.engines import revision
from transforms.engines import vllm_settings as module
from transforms.engines.revision import local_revision
from transforms.engines.vllm_settings import (
    GIB,
    OWN_ARGUMENTS,
    environment,
    memory_arguments,
    vllm_settings,
)
from transforms.profiles.load import load_profile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"model_type": "x"}')
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 1000)
    return tmp_path


def test_content_counts_and_documentation_does_not(folder: Path) -> None:
    before = local_revision(folder)
    assert before.startswith("sha256:")
    (folder / "README.md").write_text("hola")
    (folder / ".cache").write_text("x")
    assert local_revision(folder) == before
    (folder / "model.safetensors").write_bytes(b"\1" * 1000)
    assert local_revision(folder) != before


def test_large_weights_count_by_size_and_say_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revision, "HASH_LIMIT_BYTES", 500)
    monkeypatch.setattr(revision, "_SMALL_FILE_BYTES", 500)
    before = local_revision(folder)
    assert before.startswith("sizes:")
    (folder / "model.safetensors").write_bytes(b"\1" * 1000)
    assert local_revision(folder) == before
    (folder / "model.safetensors").write_bytes(b"\1" * 1001)
    assert local_revision(folder) != before


def test_arguments_of_the_job_win_over_the_profile_and_ours() -> None:
    profile = load_profile("nano")
    settings = vllm_settings(profile, "some/model", overrides={"max_num_seqs": 7})
    assert settings.engine["max_num_seqs"] == 7
    assert settings.engine["max_model_len"] == 4096
    assert settings.engine["limit_mm_per_prompt"] == OWN_ARGUMENTS["limit_mm_per_prompt"]
    assert settings.revision == "main"


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"there is no folder '\./no-existe'"):
        vllm_settings(load_profile("nano"), "./no-existe")


def test_a_folder_has_no_hub_revision(folder: Path) -> None:
    with pytest.raises(ConfigError, match="leave it out"):
        vllm_settings(load_profile("nano"), str(folder), "main")


def test_a_local_folder_is_never_looked_up_on_the_network(folder: Path) -> None:
    profile = load_profile("nano")
    assert environment(vllm_settings(profile, str(folder)))["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in environment(vllm_settings(profile, "some/model"))


def test_a_small_machine_gives_vllm_less_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    monkeypatch.setattr(module, "is_cpu_build", lambda: True)
    plain = vllm_settings(load_profile("holo2"), "some/model")
    cache, kv = "mm_processor_cache_gb", "kv_cache_memory_bytes"
    assert memory_arguments(plain, 64 * GIB) == {cache: 4.0, kv: 2 * GIB}
    assert memory_arguments(plain, 2 * GIB) == {cache: 0.25, kv: GIB // 2}
    nano = vllm_settings(load_profile("nano"), "some/model", overrides={cache: 1})
    assert memory_arguments(nano, 2 * GIB) == {}, "what is stated stays"
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    assert kv not in memory_arguments(plain, 2 * GIB)
    monkeypatch.setattr(module, "is_cpu_build", lambda: False)
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE")
    assert memory_arguments(plain, 2 * GIB) == {cache: 0.25}
