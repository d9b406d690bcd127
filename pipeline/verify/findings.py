"""What a check of a dataset finds, and what it looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_KEPT = 1000
"""Findings kept one by one; more are only counted, so that memory stays bounded."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be.

    Attributes:
        check: machine code of the check.
        where: file, unit or member.
        detail: what was expected and what is there, for a person.
    """

    check: str
    where: str
    detail: str


@dataclass(slots=True)
class Verdict:
    """The outcome of a verification.

    Attributes:
        dataset: its root.
        units, parts, part_bytes: committed ones that were looked at.
        rows: rows by table.
        screens_read: screenshots whose bytes were read again from their shards.
        leftovers: parts that no record names; nobody reads them.
        waiting: units that a run planned and that no record names: not done yet.
        problems: how many findings there were; `findings` are the first of them.
    """

    dataset: str
    units: int = 0
    parts: int = 0
    part_bytes: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    screens_read: int = 0
    leftovers: int = 0
    waiting: int = 0
    problems: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing was found."""
        return self.problems == 0

    def add(self, check: str, where: str, detail: str) -> None:
        """Note one finding."""
        self.problems += 1
        if len(self.findings) < MOST_KEPT:
            self.findings.append(Finding(check, where, detail))
