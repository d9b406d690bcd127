"""Which model the job means, settled before it runs: profile, checkpoint, frame and licence."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from pathlib import Path

from pipeline.config import ModelConfig
from schemas.geometry import FrameKind
from schemas.profile import Checkpoint, ModelProfile
from transforms.engines.vllm_settings import VllmSettings, vllm_settings
from transforms.profiles.load import load_profile, resolve_frame

NANO = "nano"
"""The checkpoint id that this project makes itself instead of fetching it."""

UNKNOWN_LICENCE = "unknown"


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that is ready to be started.

    Attributes:
        licence: of the checkpoint, as the profile says; `unknown` for one it does not list.
        commercial_use: whether the licence allows it; None = not known.
    """

    profile: ModelProfile
    frame: FrameKind
    licence: str
    commercial_use: bool | None
    vllm: VllmSettings

    @property
    def name(self) -> str:
        """The checkpoint as it goes into rows: its id, or the folder's name."""
        return self.vllm.name

    @property
    def revision(self) -> str:
        """The hub revision, or a content hash of a local folder."""
        return self.vllm.revision


def resolve_model(config: ModelConfig) -> ResolvedModel:
    """Settle everything about the model that can be settled without starting it.

    The nano checkpoint is made here, the first time.

    Raises:
        ConfigError: if the profile is unknown, the frame is not settled, or a folder is missing.
    """
    profile = load_profile(config.profile)
    frame = resolve_frame(profile, config.frame)
    wanted = config.checkpoint or profile.checkpoints[0].id
    known = _known(profile, wanted)
    settings = vllm_settings(
        profile, _location(wanted), config.revision, config.engine, name=_name(wanted)
    )
    return ResolvedModel(
        profile=profile,
        frame=frame,
        licence=known.licence if known else UNKNOWN_LICENCE,
        commercial_use=known.commercial_use if known else None,
        vllm=settings,
    )


def _known(profile: ModelProfile, wanted: str) -> Checkpoint | None:
    return next((found for found in profile.checkpoints if found.id == wanted), None)


def _location(wanted: str) -> str:
    """Where vLLM finds it: our own checkpoint's folder, a folder, or the id itself."""
    if wanted != NANO:
        return os.path.expanduser(wanted)  # noqa: PTH111 - Path's raises for an unknown user
    from pipeline.nano.checkpoint import ensure_checkpoint

    return str(ensure_checkpoint())


def _name(wanted: str) -> str:
    """A folder is known by its last part: rows must not depend on where a machine keeps it."""
    folder = Path(os.path.expanduser(wanted))  # noqa: PTH111 - Path's raises for an unknown user
    return folder.name if folder.is_dir() else wanted
