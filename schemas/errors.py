"""The exceptions of the project: one small tree, each carrying the data that explains it."""

from __future__ import annotations

from schemas.codes import RejectReason


class PantallaError(Exception):
    """Base of every error this project raises on purpose."""


class ConfigError(PantallaError):
    """A job setting is wrong; the message says which, its value, and what to do (exit code 2)."""


class InputError(PantallaError):
    """The input as a whole cannot be used, for example a pattern that matches nothing (exit 2)."""


class DatasetError(PantallaError):
    """A dataset on disk or S3 contradicts what is asked of it, for example another fingerprint."""


class StorageError(PantallaError):
    """A file or object could not be read or written after bounded retries."""


class CountMismatchError(PantallaError):
    """In is not out plus rejected: a defect of ours, never of the data."""


class EngineError(PantallaError):
    """The inference engine could not be started or kept alive (exit code 3)."""


class DeadlineError(PantallaError):
    """Something was waited for longer than makes sense; the message says what."""


class StoppedError(PantallaError):
    """A signal asked the job to stop (exit code 128 + signal).

    Attributes:
        signal: its number.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


class LabelStudioError(PantallaError):
    """The Label Studio server refused or lost something; holds no token, cookie or task text."""


class MemberRejected(PantallaError):  # noqa: N818 - it is a verdict on one item, not a failure of the job
    """One shard member or one query cannot be used; its neighbours go on.

    Attributes:
        reason: machine code.
        detail: what was seen, for a person.
        sha256: of the image's bytes, where they were read before the verdict.
    """

    def __init__(self, reason: RejectReason, detail: str, sha256: str | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.sha256 = sha256
