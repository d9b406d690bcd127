"""What a format's reader returns, and the reader's type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from schemas.codes import SampleStatus
from transforms.parse.places import RawPlace


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer in the model's own frame, before its numbers are checked.

    Attributes:
        places: what the answer says, in its order.
        status: set when the answer is settled without places (`absent`, `no_answer`, ...), and to
            `truncated` beside the places that were complete before a cut.
        flags: what was repaired or noticed, see `transforms.parse.flags`.
    """

    places: tuple[RawPlace, ...] = ()
    status: SampleStatus | None = None
    flags: frozenset[str] = frozenset()


AnswerReader: TypeAlias = "Callable[[str, bool], Reading]"
"""`(text, cut)` to a reading; `cut` says that the token limit ended the answer. Never raises."""


def unreadable(flags: frozenset[str] | set[str], *, cut: bool) -> Reading:
    """An answer that holds nothing complete: cut short, or not in the format."""
    status = SampleStatus.TRUNCATED if cut else SampleStatus.UNPARSEABLE
    return Reading(status=status, flags=frozenset(flags))


def nothing_said(flags: frozenset[str], *, cut: bool, thinking: bool) -> Reading:
    """An answer without text after its reasoning."""
    status = SampleStatus.TRUNCATED if cut and thinking else SampleStatus.NO_ANSWER
    return Reading(status=status, flags=flags)
