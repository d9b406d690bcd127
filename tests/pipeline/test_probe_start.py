"""At its start a job asks a few drawn screens, and stops when the profile is contradicted."""

import logging
import pickle
from pathlib import Path

import pytest
from job_fixtures import Shot, job, oracle, shots, write_shard
from probe_models import (
    Convention,
    Model,
    anywhere,
    chatty,
    engine,
    engine_factory,
    start_scenes,
)  # fmt: skip

from pipeline.cli.errors import exit_code
from pipeline.config import JobConfig, ModelConfig
from pipeline.dataset import open_dataset
from pipeline.nano.scenes import nano_scenes
from pipeline.run import run_job
from schemas.errors import ConfigError
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.profile import ModelProfile
from schemas.records import Answer
from schemas.resize import ResizeRule, TileRule
from transforms.engines.base import EngineRequest
from transforms.probe.start import CheckedFactory, StartCheck, check_engine
from transforms.processor_check import CHECK_SIZES, coarse_images, compare_rules, compare_tokens
from transforms.profiles.load import load_profile
from transforms.resize import seen_chain, seen_image

HOLO2 = load_profile("holo2")
BY_32 = ResizeRule(factor=32, min_pixels=65_536, max_pixels=16_777_216)
BY_28 = ResizeRule(factor=28, min_pixels=3_136, max_pixels=12_845_056)


class Both:
    """Answers the probe as a simulated model, and the job's own questions as an oracle."""

    def __init__(self, convention: Convention, known: list[Shot]) -> None:
        self.probed = Model(start_scenes(), QWEN, convention)
        self.job = oracle(known)

    def __call__(self, request: EngineRequest) -> Answer:
        return (self.probed if "«" in request.prompt and "Presione" in request.prompt
                else self.job)(request)  # fmt: skip


QWEN = load_profile("qwen3-vl")


def checked(model: ModelConfig, tmp_path: Path, known: list[Shot]) -> JobConfig:
    return job(tmp_path, write_shard(tmp_path / "a.tar", known), model=model)


def qwen(**changes: object) -> ModelConfig:
    return ModelConfig.model_validate({"profile": "qwen3-vl", **changes})


def test_a_model_that_answers_as_its_profile_says_runs(tmp_path: Path) -> None:
    known = shots(2)
    config = checked(qwen(), tmp_path, known)
    script = Both(Convention(boxes="xyxy", nonsense=0.2), known)
    outcome = run_job(config, engine_factory=engine_factory(script))
    assert outcome.exit_code == 0
    # The probe's questions are nobody's samples.
    assert outcome.report.figures.counts.samples == 6


@pytest.mark.parametrize("nonsense", [0.0, 0.3])
def test_a_wrong_profile_stops_the_job_with_the_evidence(tmp_path: Path, nonsense: float) -> None:
    known = shots(2)
    config = checked(qwen(), tmp_path, known)
    script = Both(Convention(FrameKind.ORIGINAL_PX, boxes="xyxy", nonsense=nonsense), known)
    with pytest.raises(ConfigError, match="does not answer in the frame 'norm_1000'") as caught:
        run_job(config, engine_factory=engine_factory(script))
    said = str(caught.value)
    assert exit_code(caught.value) == 2
    assert "median error" in said
    assert "settled: pixels of the" in said
    assert any("0 to 1000 " in line and line.endswith("<- the profile")
               for line in said.splitlines())  # fmt: skip
    assert open_dataset(config.output.dataset).commits() == []


def test_b082_boxes_that_an_upgrade_moved_stop_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known = shots(1)
    script = Both(Convention(boxes="xyxy", shift=0.03), known)
    with pytest.raises(ConfigError, match=r"'norm_1000', but \d+ px .* engine been upgraded"):
        run_job(checked(qwen(), tmp_path, known), engine_factory=engine_factory(script))
    assert run_job(
        checked(qwen(probe="warn"), tmp_path, known), engine_factory=engine_factory(script)
    ).exit_code in (0, 1)
    assert "beside what it is asked for" in caplog.text


def test_a_wrong_frame_in_the_job_is_caught_too(tmp_path: Path) -> None:
    known = shots(1)
    config = checked(qwen(frame="norm_1", probe="warn"), tmp_path, known)
    script = Both(Convention(boxes="xyxy"), known)
    with pytest.raises(ConfigError, match="settled: 0 to 1000"):
        run_job(config, engine_factory=engine_factory(script))


@pytest.mark.parametrize("script", [anywhere, chatty])
def test_a_model_that_cannot_ground_is_refused_unless_forced(
    tmp_path: Path, script: object, caplog: pytest.LogCaptureFixture
) -> None:
    known = shots(1)
    factory = engine_factory(script)  # type: ignore[arg-type]
    (tmp_path / "forced").mkdir()
    (tmp_path / "off").mkdir()
    with pytest.raises(ConfigError, match="probe cannot tell") as caught:
        run_job(checked(qwen(), tmp_path, known), engine_factory=factory)
    assert '--set model.probe="warn"' in str(caught.value)
    with caplog.at_level(logging.WARNING):
        forced = run_job(
            checked(qwen(probe="warn"), tmp_path / "forced", known), engine_factory=factory
        )
    assert "cannot tell the frame of profile 'qwen3-vl'" in caplog.text
    off = run_job(checked(qwen(probe="off"), tmp_path / "off", known), engine_factory=factory)
    for outcome in (forced, off):
        assert outcome.report.figures.counts.samples == 3


def test_an_engine_that_is_refused_is_closed() -> None:
    running = engine(anywhere)
    with pytest.raises(ConfigError):
        CheckedFactory(lambda: running, StartCheck(HOLO2, FrameKind.NORM_1000))()
    with pytest.raises(Exception, match="closed"):
        running.collect()


def test_the_checked_factory_is_picklable() -> None:
    check = StartCheck(HOLO2, FrameKind.NORM_1000, scenes=nano_scenes)
    factory = CheckedFactory(engine_factory(anywhere), check)
    assert pickle.loads(pickle.dumps(factory)).check == factory.check


def holo2_model(profile: ModelProfile = HOLO2) -> Model:
    return Model(start_scenes(), profile, Convention())


def test_another_factor_in_the_processor_stops_the_job_with_both_values() -> None:
    running = engine(holo2_model(), processor=BY_28)
    with pytest.raises(ConfigError) as caught:
        check_engine(running, StartCheck(HOLO2, FrameKind.NORM_1000))
    assert "1920x1080: the profile's rule gives 1920x1088, the engine 1932x1092" in str(
        caught.value
    )
    assert running.submitted == []


@pytest.mark.parametrize("mode", ["require", "warn", "off"])
def test_the_processor_is_compared_in_every_mode(mode: str) -> None:
    with pytest.raises(ConfigError, match="disagree about what the model sees"):
        check_engine(engine(chatty, BY_28), StartCheck(HOLO2, FrameKind.NORM_1000, mode))  # type: ignore[arg-type]


def test_the_right_processor_passes() -> None:
    check_engine(engine(holo2_model(), processor=BY_32), StartCheck(HOLO2, FrameKind.NORM_1000))


def test_a_stricter_profile_is_right() -> None:
    strict = HOLO2.model_copy(update={
        "resize": ResizeRule(factor=32, min_pixels=65_536, max_pixels=524_288)})  # fmt: skip
    assert compare_rules(strict, FrameKind.SEEN_PX, BY_32) == []
    loose = HOLO2.model_copy(update={
        "resize": ResizeRule(factor=32, min_pixels=1_024, max_pixels=50_000_000)})  # fmt: skip
    found = {mismatch.original for mismatch in compare_rules(loose, FrameKind.SEEN_PX, BY_32)}
    assert found == {Size(320, 200)}


def test_without_a_rule_only_seen_pixels_are_in_danger() -> None:
    bare = HOLO2.model_copy(update={"resize": None})
    assert compare_rules(bare, FrameKind.NORM_1000, BY_32) == []
    assert {one.original for one in compare_rules(bare, FrameKind.SEEN_PX, BY_32)} >= {
        Size(1920, 1080), Size(320, 200)}  # fmt: skip


def test_tiles_of_another_size_or_number_are_a_mismatch() -> None:
    mine = TileRule(kind="tiles", tile=512, max_tiles=12)
    profile = HOLO2.model_copy(update={"resize": mine})
    assert compare_rules(profile, FrameKind.SEEN_PX, mine) == []
    for change in ({"tile": 448}, {"max_tiles": 6}):
        other = mine.model_copy(update=change)
        assert compare_rules(profile, FrameKind.SEEN_PX, other)


def test_a_processor_that_squeezes_every_picture_is_caught() -> None:
    model = holo2_model()

    def squeezed(request: EngineRequest) -> Answer:
        answer = model(request)
        return Answer(answer.request_id, answer.completions, 300, image_tokens=256)

    with pytest.raises(ConfigError) as caught:
        check_engine(engine(squeezed), StartCheck(HOLO2, FrameKind.NORM_1000))
    assert "2560x1440: the profile's rule gives 3600 image tokens, the engine 256 image tokens" in (
        str(caught.value)
    )


def test_many_pixels_behind_a_token_are_a_warning() -> None:
    whole = SeenImage.unchanged(Size(3840, 2160))
    assert coarse_images([(whole, 256)]) == [
        "3840x2160: 256 image tokens, 32400 original pixels behind each"
    ]
    assert coarse_images([(whole, 8160), (whole, None)]) == []
    canvas = load_profile("holotron-12b").model_copy(update={"resize": None})
    assert compare_tokens(canvas, [(whole, 256)]) == []  # no rule, no expectation


@pytest.mark.parametrize("size", CHECK_SIZES, ids=str)
def test_the_checks_own_sizes_can_be_shown(size: Size) -> None:
    for rule in (BY_28, BY_32):
        chain = seen_chain(SeenImage.unchanged(size), rule)
        assert seen_chain(SeenImage.unchanged(chain.seen), rule).seen == chain.seen


def test_the_start_screens_are_few_and_differ_in_shape() -> None:
    scenes = start_scenes()
    assert sum(len(scene.targets) for scene in scenes) == 16
    assert {scene.size.width > scene.size.height for scene in scenes} == {True, False}
    for scene in scenes:
        seen_image(scene.image, BY_32)
