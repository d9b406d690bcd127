"""The check at engine start: stop the job while it has cost a minute, not a day.

Two things are compared with the profile before the first real screen: what the loaded processor
does to an image, and in which convention the model answers about a handful of screens we drew.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from schemas.profile import ModelProfile
from transforms.engines.base import Engine, EngineFactory
from transforms.probe.ask import Asked, ask_scenes
from transforms.probe.evidence import evidence_table, example_lines, verdict_line
from transforms.probe.hypotheses import Hypothesis
from transforms.probe.scene import Extent, SceneMaker, spanish_scenes
from transforms.probe.verdict import Verdict, judge_replies
from transforms.processor_check import SizeMismatch, coarse_images, compare_rules, compare_tokens

log = logging.getLogger(__name__)

ProbeMode: TypeAlias = Literal["require", "warn", "off"]

SEED = 0
"""Of the start check's screens: the same at every start, so that a refusal can be repeated."""

MAX_DRIFT = 0.02
"""Median error, as a share of the diagonal, beyond which a model of the right frame is refused: a
new release of an engine has moved every box by tens of pixels, and no text told of it."""


@dataclass(frozen=True, slots=True)
class StartCheck:
    """What is expected of an engine.

    Attributes:
        profile: how the model is asked and shown its images.
        frame: the convention in which the job will read its answers.
        mode: `require` refuses a model of which the probe cannot tell, `warn` says so and goes on,
            `off` asks nothing. A contradiction stops the job in both of the first two.
        scenes: draws the screens it is asked about.
    """

    profile: ModelProfile
    frame: FrameKind
    mode: ProbeMode = "require"
    scenes: SceneMaker = spanish_scenes


@dataclass(frozen=True, slots=True)
class CheckedFactory:
    """An engine factory that lets no engine pass unchecked; picklable if `factory` is."""

    factory: EngineFactory
    check: StartCheck

    def __call__(self) -> Engine:
        """Start the engine and check it, in the thread that will own it.

        Raises:
            ConfigError: if the engine contradicts the profile; it is closed then.
            EngineError: if it does not start, or dies.
        """
        engine = self.factory()
        with ExitStack() as undo:
            undo.callback(engine.close)
            check_engine(engine, self.check)
            undo.pop_all()
        return engine


def check_engine(engine: Engine, check: StartCheck) -> None:
    """Compare a running engine with what the job believes about it.

    Args:
        engine: owned by the calling thread, with nothing in flight.
        check: what is expected.

    Raises:
        ConfigError: with both values of every mismatch, or with the table of the probe.
        EngineError: if the engine dies.
    """
    profile = check.profile
    _refuse_sizes(profile, compare_rules(profile, check.frame, engine.info.processor))
    if check.mode == "off":
        return
    asked = ask_scenes(engine, profile, check.scenes(Extent.START, SEED), SEED)
    _check_tokens(profile, asked)
    _check_verdict(check, asked, judge_replies(asked.replies, SEED))


def expected_hypothesis(frame: FrameKind) -> Hypothesis:
    """What a profile's frame claims: numbers in it, x first, boxes by their corners."""
    return Hypothesis(frame)


def _check_tokens(profile: ModelProfile, asked: Asked) -> None:
    _refuse_sizes(profile, compare_tokens(profile, asked.image_tokens))
    for line in coarse_images(asked.image_tokens):
        log.warning("the model sees little of large screens, check its processor: %s", line)


def _refuse_sizes(profile: ModelProfile, mismatches: list[SizeMismatch]) -> None:
    if mismatches:
        lines = "\n".join(f"  {mismatch}" for mismatch in mismatches)
        raise ConfigError(
            f"profile {profile.name!r} and the loaded processor disagree about what the model "
            f"sees:\n{lines}\nCorrect resize in the profile, or the processor's settings in "
            "[model.engine] mm_processor_kwargs"
        )


def _check_verdict(check: StartCheck, asked: Asked, verdict: Verdict) -> None:
    expected = expected_hypothesis(check.frame)
    if verdict.finding == "settled" and expected in verdict.candidates:
        _check_drift(check, verdict, expected)
        log.info("probe: the model answers in %s, as expected", check.frame)
        return
    name = check.profile.name
    evidence = "\n".join(f"  {line}" for line in _evidence(asked, verdict, expected))
    if verdict.excludes(expected):
        raise ConfigError(
            f"the model does not answer in the frame {check.frame.value!r} that the job reads its "
            f"answers in (profile {name!r}):\n{evidence}\n"
            "Settle it with `pantalla probe`, then correct the profile or model.frame"
        )
    if check.mode == "warn":
        log.warning("the probe cannot tell the frame of profile %r:\n%s", name, evidence)
        return
    raise ConfigError(
        f"the probe cannot tell in which frame the model of profile {name!r} answers:\n"
        f"{evidence}\nLook closer with `pantalla probe`, or run all the same with "
        '--set model.probe="warn"'
    )


def _check_drift(check: StartCheck, verdict: Verdict, expected: Hypothesis) -> None:
    """Refuse answers in the right frame that lie beside their targets.

    Raises:
        ConfigError: where the median error is over `MAX_DRIFT`; a warning in the mode `warn`.
    """
    found = next(one for one in verdict.standings if one.hypothesis == expected)
    if found.median_share <= MAX_DRIFT:
        return
    said = (
        f"the model answers in the frame {check.frame.value!r}, but {found.median_px:.0f} px "
        f"({found.median_share:.1%} of the diagonal) beside what it is asked for, at the median; "
        f"up to {MAX_DRIFT:.0%} is let pass. Has the engine been upgraded?"
    )
    if check.mode == "require":
        raise ConfigError(f'{said} To run all the same: --set model.probe="warn"')
    log.warning("%s", said)


def _evidence(asked: Asked, verdict: Verdict, expected: Hypothesis) -> list[str]:
    lines = [*evidence_table(verdict, expected, rows=6), verdict_line(verdict)]
    if not verdict.standings:
        lines += [f"answered: {text}" for text in example_lines([r.text for r in asked.replies])]
    return lines
