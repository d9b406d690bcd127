"""Probe a model: start it, ask about screens we drew, and say in which frame it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.config import ModelConfig, load_config
from pipeline.model import ResolvedModel, resolve_model
from pipeline.probe_screens import SCENE_MAKERS
from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from schemas.profile import ModelProfile
from transforms.engines.base import Engine, EngineFactory
from transforms.engines.vllm import vllm_factory
from transforms.probe.ask import Asked, ask_scenes
from transforms.probe.hypotheses import Hypothesis
from transforms.probe.scene import Extent
from transforms.probe.verdict import Verdict, judge_replies
from transforms.processor_check import (
    SizeMismatch,
    coarse_images,
    compare_rules,
    compare_tokens,
)
from transforms.profiles.load import list_profiles, load_profile


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What the probe of one model found.

    Attributes:
        model: profile and checkpoint that were asked.
        expected: what the profile or the user says; None = nothing.
        mismatches: sizes on which the loaded processor contradicts the profile's resize rule.
        coarse: screens of which the model sees too little, in words.
        examples: a few raw answers.
        seed: of the screens and requests.
    """

    model: ResolvedModel
    verdict: Verdict
    expected: Hypothesis | None
    mismatches: tuple[SizeMismatch, ...]
    coarse: tuple[str, ...]
    examples: tuple[str, ...]
    seed: int

    @property
    def contradicted(self) -> bool:
        """Whether the profile is wrong about the frame or about what the model sees."""
        ruled_out = self.expected is not None and self.verdict.excludes(self.expected)
        return ruled_out or bool(self.mismatches)


def probe_model(
    config: ModelConfig,
    seed: int = 0,
    *,
    engine_factory: EngineFactory | None = None,
    status: Callable[[str], None] = lambda _: None,
) -> ProbeReport:
    """Start the model, ask, compare, and close it.

    Args:
        config: which model; its frame, or the profile's, is what the finding is compared with.
        seed: of the screens and requests.
        engine_factory: another engine than vLLM, for tests.
        status: told when a step begins.

    Raises:
        ConfigError: if the profile is unknown, asks no grounding, or the settings are refused.
        EngineError: if the engine does not start, or dies.
    """
    profile = load_profile(config.profile)
    stated = config.frame or profile.frame
    # A frame must be there to compose requests; where none is known, any will do for asking.
    model = resolve_model(config.model_copy(update={"frame": stated or FrameKind.NORM_1000}))
    scenes = SCENE_MAKERS[profile.probe_screens](Extent.FULL, seed)
    targets = sum(len(scene.targets) for scene in scenes)
    status("Starting the engine")
    engine = (engine_factory or vllm_factory(model.vllm))()
    try:
        status(f"Asking {targets} questions about {len(scenes)} drawn screens")
        asked = ask_scenes(engine, profile, scenes, seed)
        mismatches = _mismatches(engine, profile, model.frame, asked)
    finally:
        engine.close()
    expected = Hypothesis(stated) if stated is not None else None
    return _report(model, asked, expected, mismatches, seed)


def _report(
    model: ResolvedModel,
    asked: Asked,
    expected: Hypothesis | None,
    mismatches: list[SizeMismatch],
    seed: int,
) -> ProbeReport:
    return ProbeReport(
        model=model,
        verdict=judge_replies(asked.replies, seed),
        expected=expected,
        mismatches=tuple(mismatches),
        coarse=tuple(coarse_images(asked.image_tokens)),
        examples=tuple(dict.fromkeys(reply.text for reply in asked.replies)),
        seed=seed,
    )


def probed_config(
    profile: str | None,
    checkpoint: str | None,
    frame: FrameKind | None = None,
    overrides: Sequence[str] = (),
) -> ModelConfig:
    """Which model is meant when only its profile or only its id is given.

    Args:
        profile: how it is asked; None = the bundled profile that lists exactly that checkpoint.
        checkpoint: None = the profile's first.
        frame: what to compare with, over the profile's.
        overrides: `model.engine.key=value` and the like, as for a job.

    Raises:
        ConfigError: if no profile is named and none lists the checkpoint, or an override is wrong.
    """
    place = ('input.shards=["none"]', 'output.dataset="none"')  # a job has them, a probe does not
    given = load_config(None, (*place, *overrides)).model
    changes: dict[str, object] = {"profile": profile or _listing(checkpoint)}
    if checkpoint is not None:
        changes["checkpoint"] = checkpoint
    if frame is not None:
        changes["frame"] = frame
    return given.model_copy(update=changes)


def _listing(checkpoint: str | None) -> str:
    """The bundled profile of a checkpoint, by its exact id: a similar name says nothing."""
    if checkpoint is None:
        raise ConfigError("say which model to probe: --model ID, --profile NAME, or both")
    for name in list_profiles():
        if checkpoint in (known.id for known in load_profile(name).checkpoints):
            return name
    raise ConfigError(
        f"no bundled profile lists {checkpoint!r}: say with --profile how it is to be asked "
        f"({', '.join(list_profiles())}, or a file of your own)"
    )


def _mismatches(
    engine: Engine, profile: ModelProfile, frame: FrameKind, asked: Asked
) -> list[SizeMismatch]:
    rules = compare_rules(profile, frame, engine.info.processor)
    return [*rules, *compare_tokens(profile, asked.image_tokens)]
