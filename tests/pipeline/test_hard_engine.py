"""Faults of engines that people have met in public; the numbers are those of our list of them."""

import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from job_fixtures import job, oracle, shots, write_shard, write_tar
from PIL import Image
from pydantic import ValidationError

from pipeline.dataset import open_dataset
from pipeline.run import run_job
from schemas.codes import QueryKind
from schemas.errors import DatasetError, EngineError
from schemas.geometry import SeenImage, Size
from schemas.profile import ModelProfile
from schemas.records import Answer, Completion
from transforms.engines.base import EngineInfo, EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency
from transforms.engines.vllm_settings import vllm_settings
from transforms.parse import parse_answer
from transforms.processor_check import coarse_images
from transforms.profiles.load import load_profile

KNOWN = shots(6)


class Versioned(ScriptedEngine):
    """The scripted engine, as if it had been upgraded to another version."""

    def __init__(self, version: str, fail_after: int | None = None) -> None:
        latency = ScriptedLatency(hold=1, per_collect=3, fail_after=fail_after)
        super().__init__(oracle(KNOWN), latency, 6)
        self._version = version

    @property
    def info(self) -> EngineInfo:
        return replace(super().info, version=self._version)


def test_b081_each_row_says_which_engine_answered_it(tmp_path: Path) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    with pytest.raises(EngineError):
        run_job(config, engine_factory=partial(Versioned, "1.0", fail_after=8))
    assert run_job(config, engine_factory=partial(Versioned, "2.0")).exit_code == 0
    rows = open_dataset(config.output.dataset).table("annotations").to_pylist()
    assert {row["engine_version"] for row in rows} == {"1.0", "2.0"}
    for row in rows:
        assert row["model"]
        assert row["model_revision"]
    by_unit = {(row["unit_id"], row["engine_version"]) for row in rows}
    assert len(by_unit) == len({unit for unit, _ in by_unit})  # a unit never mixes two


def plain(mode: str, size: tuple[int, int], colour: object) -> bytes:
    sink = io.BytesIO()
    Image.new(mode, size, colour).save(sink, "PNG")
    return sink.getvalue()


def side(request: EngineRequest) -> Answer:
    """An answer that depends on nothing but the picture."""
    text = f'[{{"bbox_2d":[0,0,{request.image.width},{request.image.height}],"label":"x"}}]'
    return Answer(request.request_id, tuple(Completion(text, "stop", 9) for _ in range(request.n)))


def test_b083_b084_one_prompt_about_two_pictures_is_two_questions(tmp_path: Path) -> None:
    query = b'{"queries": [{"instruction": "el bot\\u00f3n"}]}'
    files = {
        "ancha.png": plain("RGB", (100, 30), "red"),
        "ancha.json": query,
        "alta.png": plain("RGB", (30, 100), "red"),
        "alta.json": query,
        "gris.png": plain("L", (100, 30), 76),
        "gris.json": query,
    }
    config = job(tmp_path, write_tar(tmp_path / "a.tar", files))
    run_job(config, engine_factory=partial(ScriptedEngine, side))
    dataset = open_dataset(config.output.dataset)
    rows = dataset.table("annotations").to_pylist()
    assert len({row["sample_id"] for row in rows}) == 3
    assert len({row["screen_id"] for row in rows}) == 3
    tall = next(r for r in rows if (r["image_width"], r["image_height"]) == (30, 100))
    wide = next(r for r in rows if (r["image_width"], r["image_height"]) == (100, 30))
    assert tall["answers"] != wide["answers"]


def test_b085_another_page_colour_is_another_dataset(tmp_path: Path) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    run_job(config, engine_factory=partial(Versioned, "1.0"))
    dark = config.input.model_copy(update={"background": "#000000"})
    with pytest.raises(DatasetError, match="background"):
        run_job(config.model_copy(update={"input": dark}))


def test_b086_a_grammar_is_compact_and_blanks_without_end_are_named() -> None:
    settings = vllm_settings(load_profile("nano"), "nano/nano")
    assert settings.engine["structured_outputs_config"]["disable_any_whitespace"] is True
    seen = SeenImage.unchanged(Size(100, 100))
    profile = load_profile("holo1.5")
    task = profile.tasks[QueryKind.GROUNDING]
    said = '{\n"x":' + " " * 4000
    parsed = parse_answer(said, "length", task.answer_format, profile.frame, seen)
    assert parsed.status == "truncated"
    assert "whitespace_loop" in parsed.flags


def test_b087_a_grammar_and_thinking_exclude_each_other() -> None:
    holo = load_profile("holo2").model_dump(mode="json")
    assert ModelProfile.model_validate(holo)
    holo["chat_template_kwargs"] = {"thinking": True}
    with pytest.raises(ValidationError, match=r"chat_template_kwargs\.thinking is on, but tasks"):
        ModelProfile.model_validate(holo)


def test_b089_a_large_screen_squeezed_into_few_tokens_is_told() -> None:
    whole = SeenImage.unchanged(Size(3840, 2160))
    (line,) = coarse_images([(whole, 256)])
    assert "3840x2160: 256 image tokens" in line
