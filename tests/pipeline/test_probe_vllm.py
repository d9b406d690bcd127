"""The probe on the real engine: nano knows none of its buttons, and its processor fits."""

from collections.abc import Iterator

import pytest

from pipeline.nano.checkpoint import ensure_checkpoint
from pipeline.probe import probe_model, probed_config
from pipeline.probe_text import report_lines
from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from schemas.resize import ResizeRule
from transforms.engines.base import Engine
from transforms.engines.vllm import start_vllm, vllm_settings
from transforms.probe.ask import ask_scenes
from transforms.probe.start import StartCheck, check_engine, start_scenes
from transforms.profiles.load import load_profile
from transforms.resize import image_tokens

pytestmark = pytest.mark.vllm

NANO = load_profile("nano")


class Kept:
    """An engine that outlives `probe_model`, so that the module starts only one."""

    def __init__(self, engine: Engine) -> None:
        self.info, self.submit, self.collect = engine.info, engine.submit, engine.collect

    def close(self) -> None:
        """Stay open."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    running = start_vllm(vllm_settings(NANO, str(ensure_checkpoint()), name="nano"))
    yield running
    running.close()


def test_a_model_that_knows_none_of_the_buttons_settles_nothing(engine: Engine) -> None:
    report = probe_model(probed_config("nano", None), engine_factory=lambda: Kept(engine))
    print("\n" + "\n".join(report_lines(report)))
    assert report.verdict.finding == "cannot_tell"
    assert not report.contradicted
    assert report.mismatches == ()
    assert report.verdict.asked == 48


def test_the_processor_is_read_and_fits_the_profile(engine: Engine) -> None:
    assert engine.info.processor == ResizeRule(factor=32, min_pixels=32_768, max_pixels=524_288)
    check_engine(engine, StartCheck(NANO, FrameKind.NORM_1000))


def test_image_tokens_are_counted(engine: Engine) -> None:
    asked = ask_scenes(engine, NANO, start_scenes()[1:3])
    for shown, counted in asked.image_tokens:
        assert counted == image_tokens(shown.seen, NANO.resize)


def test_a_model_that_cannot_ground_is_refused_where_it_should(engine: Engine) -> None:
    serious = NANO.model_copy(update={"grounds": True})
    with pytest.raises(ConfigError, match="the probe cannot tell"):
        check_engine(engine, StartCheck(serious, FrameKind.NORM_1000))
    check_engine(engine, StartCheck(serious, FrameKind.NORM_1000, "warn"))


def test_a_wrong_factor_in_the_profile_stops_the_job(engine: Engine) -> None:
    wrong = NANO.model_copy(
        update={"resize": ResizeRule(factor=28, min_pixels=32_768, max_pixels=524_288)}
    )
    with pytest.raises(ConfigError, match="disagree about what the model sees"):
        check_engine(engine, StartCheck(wrong, FrameKind.NORM_1000))
