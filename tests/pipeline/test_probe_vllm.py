"""The probe on the real engine: nano is told by its own screens, and lost on the others."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_fixtures import job, shots, write_shard
from probe_models import start_scenes

from pipeline.cli.errors import exit_code
from pipeline.config import ModelConfig
from pipeline.dataset import open_dataset
from pipeline.nano.checkpoint import ensure_checkpoint
from pipeline.nano.scenes import nano_scenes
from pipeline.probe import probe_model, probed_config
from pipeline.probe_text import report_lines
from pipeline.run import run_job
from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from schemas.resize import ResizeRule
from transforms.engines.base import Engine
from transforms.engines.vllm import start_vllm, vllm_settings
from transforms.probe.ask import ask_scenes
from transforms.probe.hypotheses import Hypothesis
from transforms.probe.start import StartCheck, check_engine
from transforms.profiles.load import load_profile, profile_source
from transforms.resize import image_tokens

pytestmark = pytest.mark.vllm

NANO = load_profile("nano")


class Kept:
    """An engine that outlives `probe_model`, so that the module starts only one."""

    def __init__(self, engine: Engine) -> None:
        take_over()
        self.info, self.submit, self.collect = engine.info, engine.submit, engine.collect

    def close(self) -> None:
        """Stay open."""


RUNNING: list[Engine] = []


def take_over() -> None:
    """Make the engine the calling thread's: a job has a thread for it, and these tests another."""
    RUNNING[0]._owner = (os.getpid(), threading.get_ident())


def kept() -> Engine:
    """A factory that can be pickled, as a job's must be."""
    return Kept(RUNNING[0])


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    RUNNING.append(start_vllm(vllm_settings(NANO, str(ensure_checkpoint()), name="nano")))
    yield RUNNING[0]
    RUNNING.pop().close()


@pytest.fixture(autouse=True)
def _ours_again(engine: Engine) -> Iterator[None]:
    take_over()
    yield
    take_over()


@pytest.fixture
def estranged(tmp_path: Path) -> Path:
    """Nano as a profile that asks about the screens drawn for everyone."""
    path = tmp_path / "estranged.toml"
    source = profile_source("nano").replace('probe_screens = "nano"', 'probe_screens = "spanish"')
    path.write_text(source, encoding="utf-8")
    return path


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("seed", [0, 1])
def test_nano_s_frame_is_settled_on_its_own_screens(seed: int) -> None:
    report = probe_model(probed_config("nano", None), seed, engine_factory=kept)
    print("\n" + "\n".join(report_lines(report)))
    assert report.verdict.finding == "settled"
    assert Hypothesis(FrameKind.NORM_1000) in report.verdict.candidates
    assert not report.contradicted
    assert report.mismatches == ()


@pytest.mark.usefixtures("engine")
def test_a_model_that_knows_none_of_the_buttons_settles_nothing(estranged: Path) -> None:
    report = probe_model(probed_config(str(estranged), None), engine_factory=kept)
    print("\n" + "\n".join(report_lines(report)))
    assert report.verdict.finding == "cannot_tell"
    assert not report.contradicted
    assert report.mismatches == ()
    assert report.verdict.asked == 48


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("frame", sorted({*FrameKind} - {FrameKind.NORM_1000, FrameKind.NORM_999}))
def test_a_job_in_another_frame_is_stopped(tmp_path: Path, frame: str) -> None:
    model = ModelConfig.model_validate({"profile": "nano", "frame": frame})
    config = job(tmp_path, write_shard(tmp_path / "a.tar", shots(1)), model=model)
    with pytest.raises(ConfigError, match="settled: 0 to 1000") as caught:
        run_job(config, engine_factory=kept)
    assert exit_code(caught.value) == 2
    assert open_dataset(config.output.dataset).commits() == []


def test_the_processor_is_read_and_fits_the_profile(engine: Engine) -> None:
    assert engine.info.processor == ResizeRule(factor=32, min_pixels=32_768, max_pixels=524_288)
    check_engine(engine, StartCheck(NANO, FrameKind.NORM_1000, scenes=nano_scenes))


def test_image_tokens_are_counted(engine: Engine) -> None:
    asked = ask_scenes(engine, NANO, start_scenes()[1:3])
    for shown, counted in asked.image_tokens:
        assert counted == image_tokens(shown.seen, NANO.resize)


def test_a_model_that_cannot_ground_is_refused_where_it_should(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="the probe cannot tell"):
        check_engine(engine, StartCheck(NANO, FrameKind.NORM_1000))
    check_engine(engine, StartCheck(NANO, FrameKind.NORM_1000, "warn"))


def test_a_wrong_factor_in_the_profile_stops_the_job(engine: Engine) -> None:
    wrong = NANO.model_copy(
        update={"resize": ResizeRule(factor=28, min_pixels=32_768, max_pixels=524_288)}
    )
    with pytest.raises(ConfigError, match="disagree about what the model sees"):
        check_engine(engine, StartCheck(wrong, FrameKind.NORM_1000))
