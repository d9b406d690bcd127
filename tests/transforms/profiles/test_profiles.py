"""Profiles are data: the bundled ones say where each fact is from, and a new one needs no code."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from schemas.codes import QueryKind, Role
from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from transforms.profiles.load import list_profiles, load_profile, resolve_frame

MINE = """
name = "mío"
description = "un modelo propio"
frame = "seen_px"

[[checkpoints]]
id = "yo/mi-modelo"
licence = "apache-2.0"
source = "lo hice yo"

[tasks.grounding]
prompt_version = "1"
prompt = "¿Dónde está {target}?"
answer_format = "click_xy"
max_tokens = 32

[sources]
frame = "mi entrenamiento"
"""


FAMILIES = {
    "gta1", "holo1", "holo1.5", "holo2", "holo3", "holotron-12b", "internvl", "nano",
    "nemotron-nano-v2-vl", "os-atlas-4b", "os-atlas-7b", "phi-ground", "qwen2.5-vl", "qwen3-vl",
    "uground-v1", "ui-tars", "ui-tars-1.5", "ui-venus-1.5", "groundnext",
}  # fmt: skip


def test_bundled_names() -> None:
    assert set(list_profiles()) == FAMILIES


@pytest.mark.parametrize("name", list_profiles())
def test_each_file_carries_its_name_and_sources(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert all(profile.sources.values())
    assert all(checkpoint.licence and checkpoint.source for checkpoint in profile.checkpoints)
    assert QueryKind.GROUNDING in profile.tasks


@pytest.mark.parametrize("name", sorted(FAMILIES - {"nano"}))
@pytest.mark.parametrize(
    "fact", ["frame", "resize", "absence", "thinking", "greedy", "vote", "engine"]
)
def test_each_fact_has_a_source(name: str, fact: str) -> None:
    sources = load_profile(name).sources
    assert sources[fact].strip()
    assert {"prompt", "prompt_grounding"} & set(sources)


FRAMES = {
    "gta1": FrameKind.SEEN_PX,
    "groundnext": FrameKind.SEEN_PX,
    "holo1": FrameKind.SEEN_PX,
    "holo1.5": FrameKind.SEEN_PX,
    "holo3": FrameKind.NORM_1000,
    "holotron-12b": None,  # not published: a job must say
    "internvl": FrameKind.NORM_1000,
    "nemotron-nano-v2-vl": None,
    "os-atlas-4b": FrameKind.NORM_1000,
    "os-atlas-7b": FrameKind.NORM_1000,
    "phi-ground": FrameKind.NORM_1000,
    "qwen2.5-vl": FrameKind.SEEN_PX,
    "uground-v1": FrameKind.NORM_1000,
    "ui-tars": FrameKind.NORM_1000,
    "ui-tars-1.5": FrameKind.SEEN_PX,
    "ui-venus-1.5": FrameKind.NORM_1000,
}


@pytest.mark.parametrize(("name", "frame"), FRAMES.items())
def test_published_frames(name: str, frame: FrameKind | None) -> None:
    assert load_profile(name).frame is frame


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [
        ("holo1.5", "Hcompany/Holo1.5-72B"),
        ("holo2", "Hcompany/Holo2-30B-A3B"),
        ("holo3", "Hcompany/Holo3-122B"),
        ("qwen2.5-vl", "Qwen/Qwen2.5-VL-3B-Instruct"),
    ],
)
def test_a_licence_against_commercial_use_is_said_out_loud(name: str, checkpoint: str) -> None:
    profile = load_profile(name)
    assert "must not be used commercially" in (profile.warning or "")
    assert any(
        n.startswith(f"NO COMMERCIAL USE: {checkpoint}") for n in profile.notices(checkpoint)
    )
    assert not any(n.startswith("NO COMMERCIAL USE") for n in profile.notices())


def test_an_unknown_licence_is_said_too() -> None:
    (_, notice) = load_profile("uground-v1").notices()
    assert notice.startswith("Not known whether osunlp/UGround-V1-7B may be used commercially")


def test_a_profile_without_anything_to_say_says_nothing() -> None:
    assert load_profile("qwen3-vl").notices() == ()


@pytest.mark.parametrize("name", ["holo2", "nano", "qwen3-vl"])
def test_known_frames(name: str) -> None:
    assert resolve_frame(load_profile(name), None) is FrameKind.NORM_1000


def test_a_stated_frame_wins() -> None:
    assert resolve_frame(load_profile("holo2"), FrameKind.SEEN_PX) is FrameKind.SEEN_PX
    assert resolve_frame(load_profile("holotron-12b"), FrameKind.NORM_1) is FrameKind.NORM_1


def test_an_unknown_frame_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"Set model\.frame to one of original_px, .*probe"):
        resolve_frame(load_profile("holotron-12b"), None)


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="the nearest is 'holo2'"):
        load_profile("holo-2")
    with pytest.raises(ConfigError, match="the nearest is 'qwen3-vl'"):
        load_profile("Qwen3-VL-8B")


def test_a_new_profile_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mio.toml"
    path.write_text(MINE, encoding="utf-8")
    profile = load_profile(str(path))
    assert profile.name == "mío"
    assert profile.frame is FrameKind.SEEN_PX
    assert profile.tasks[QueryKind.GROUNDING].max_tokens == 32


def test_a_wrong_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mio.toml"
    path.write_text(MINE.replace("max_tokens", "max_token"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tasks\.grounding\.max_token: Extra inputs"):
        load_profile(str(path))


def test_broken_toml_and_missing_files_are_config_errors(tmp_path: Path) -> None:
    path = tmp_path / "mio.toml"
    path.write_text("name = ", encoding="utf-8")
    with pytest.raises(ConfigError, match="not TOML"):
        load_profile(str(path))
    path.write_bytes(b'name = "\xf1"')
    with pytest.raises(ConfigError, match="cannot read"):
        load_profile(str(path))
    with pytest.raises(ConfigError, match="there is no file"):
        load_profile(str(tmp_path / "otro.toml"))


def test_holo2_schema_is_spelt_as_pydantic_spells_it() -> None:
    class ClickCoordinates(BaseModel):
        x: int = Field(
            ge=0, le=1000, description="The x coordinate, normalized between 0 and 1000."
        )
        y: int = Field(
            ge=0, le=1000, description="The y coordinate, normalized between 0 and 1000."
        )

    schema = load_profile("holo2").tasks[QueryKind.GROUNDING].json_schema
    assert repr(schema) == repr(ClickCoordinates.model_json_schema())


def test_holo1_5_schema_is_spelt_as_pydantic_spells_it() -> None:
    class ClickAbsoluteAction(BaseModel):
        """Click at absolute coordinates."""

        action: Literal["click_absolute"] = "click_absolute"
        x: int = Field(description="The x coordinate, number of pixels from the left edge.")
        y: int = Field(description="The y coordinate, number of pixels from the top edge.")

    schema = load_profile("holo1.5").tasks[QueryKind.GROUNDING].json_schema
    assert repr(schema) == repr(ClickAbsoluteAction.model_json_schema())


def test_holo3_schema_is_spelt_as_pydantic_spells_it() -> None:
    class VisualLocalizerOutput(BaseModel):
        x: int = Field(ge=0, le=1000, description="X coordinate as integer in [0, 1000]")
        y: int = Field(ge=0, le=1000, description="Y coordinate as integer in [0, 1000]")

    schema = load_profile("holo3").tasks[QueryKind.GROUNDING].json_schema
    assert repr(schema) == repr(VisualLocalizerOutput.model_json_schema())


def test_nano_labels_are_the_role_codes() -> None:
    for task in load_profile("nano").tasks.values():
        label = task.json_schema["items"]["properties"]["label"]
        assert set(label["enum"]) == set(Role)


def test_qwen_asks_for_the_role_codes() -> None:
    prompt = load_profile("qwen3-vl").tasks[QueryKind.LOCALIZATION].prompt
    assert all(role.value in prompt for role in Role if role is not Role.OTHER)
