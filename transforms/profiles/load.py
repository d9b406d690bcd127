"""Find and read model profiles: the bundled ones by name, a user's own by path."""

from __future__ import annotations

import difflib
import tomllib
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from schemas.profile import ModelProfile

_ENDING = ".toml"


def list_profiles() -> tuple[str, ...]:
    """Names of the bundled profiles, sorted: each TOML file of this package is one."""
    entries = resources.files("transforms.profiles").iterdir()
    names = [entry.name for entry in entries if entry.name.endswith(_ENDING)]
    return tuple(sorted(name.removesuffix(_ENDING) for name in names))


def load_profile(name_or_path: str) -> ModelProfile:
    """Read a profile.

    Args:
        name_or_path: exactly a bundled name, or the path of a TOML file (recognised by its
            `.toml` ending or a path separator). A name is never matched by its beginning.

    Raises:
        ConfigError: if there is no such profile (naming the nearest), or its file is not a valid
            profile (naming each wrong key).
    """
    return parse_profile(profile_source(name_or_path), name_or_path)


def profile_source(name_or_path: str) -> str:
    """The TOML text of a profile, with its comments.

    Raises:
        ConfigError: if there is no such profile or file.
    """
    if name_or_path in list_profiles():
        file = resources.files("transforms.profiles") / f"{name_or_path}{_ENDING}"
        return file.read_text(encoding="utf-8")
    if name_or_path.endswith(_ENDING) or "/" in name_or_path:
        return _read_file(Path(name_or_path))
    raise ConfigError(_unknown_name(name_or_path))


def _unknown_name(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), list_profiles(), n=1, cutoff=0.0)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    known = ", ".join(list_profiles())
    return (
        f"model.profile: there is no profile {name!r}{hint}. Bundled: {known}. "
        "A profile of your own is given by its path, ending in .toml"
    )


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"model.profile: there is no file {str(path)!r}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"model.profile: cannot read {str(path)!r}: {error}") from error


def parse_profile(text: str, where: str) -> ModelProfile:
    """A profile from TOML text; `where` names it in errors.

    Raises:
        ConfigError: naming each wrong key.
    """
    try:
        return ModelProfile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"profile {where!r} is not TOML: {error}") from error
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'profile'}: {fault['msg']}"
            for fault in error.errors()
        )
        raise ConfigError(f"profile {where!r} is not valid: {faults}") from error


def resolve_frame(profile: ModelProfile, override: FrameKind | None) -> FrameKind:
    """The coordinate convention of a job's answers.

    Args:
        profile: its own frame is used unless the job states one.
        override: `model.frame` of the job.

    Raises:
        ConfigError: if neither is known: coordinates read in a wrong frame look right and are not.
    """
    frame = override or profile.frame
    if frame is None:
        choices = ", ".join(FrameKind)
        raise ConfigError(
            f"profile {profile.name!r} does not say in which frame the model gives coordinates. "
            f"Set model.frame to one of {choices}, or settle it with `pantalla probe`"
        )
    return frame
