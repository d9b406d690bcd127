"""Errors as exit codes and messages."""

from __future__ import annotations

from schemas.errors import (
    ConfigError,
    DatasetError,
    EngineError,
    InputError,
    PantallaError,
    StoppedError,
    StorageError,
)

FAILED = 1
BAD_INPUT = 2
ENGINE_LOST = 3
STORAGE_LOST = 4


def exit_code(error: PantallaError) -> int:
    """2 for a bad configuration, input or dataset, 3 and 4 for an engine or a store, else 1.

    Of a signal that came too early for anything else: 128 and its number.
    """
    if isinstance(error, StoppedError):
        return 128 + error.signal
    if isinstance(error, ConfigError | InputError | DatasetError):
        return BAD_INPUT
    if isinstance(error, StorageError):
        return STORAGE_LOST
    return ENGINE_LOST if isinstance(error, EngineError) else FAILED


def message(error: PantallaError) -> str:
    """The error's own words, and what caused it where the words do not say so already."""
    text = str(error) or type(error).__name__
    cause = error.__cause__
    if cause is not None and str(cause) and str(cause) not in text:
        text += f"\n  caused by: {cause}"
    return text
