"""A part of a plan, for schedulers that start several processes on one dataset."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.errors import ConfigError
from schemas.records import Unit

_FORM = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class Partition:
    """Part `index` of `count`, counted from 1: what `--array=1-8` of Slurm gives.

    Raises:
        ConfigError: if it is not one of 1..count.
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.count:
            raise ConfigError(
                f"partition {self}: partitions are numbered from 1, so the last of "
                f"{self.count} is {self.count}/{self.count}; a scheduler that counts from 0 needs "
                "1 added"
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def name(self) -> str:
        """For a file name."""
        return f"partition-{self.index}-of-{self.count}"


def parse_partition(text: str) -> Partition:
    """`i/n` as a partition.

    Raises:
        ConfigError: if it is something else, or i is not one of 1..n.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConfigError(f"partition {text!r}: it is written i/n, for example 1/4")
    return Partition(int(match[1]), int(match[2]))


def part_of(units: Sequence[Unit], partition: Partition) -> tuple[Unit, ...]:
    """The units of one partition: neighbours, so that a shard is opened by few processes.

    Every unit falls in exactly one partition, whatever `count` is: the one in which the middle of
    its members lies when all members stand in a row that is cut into `count` equal pieces. What is
    committed already plays no role, so processes that start at different times agree.
    """
    weights = [max(1, len(unit.members)) for unit in units]
    total, before = sum(weights), 0
    mine = []
    for unit, weight in zip(units, weights, strict=True):
        middle = 2 * before + weight  # in half members, to stay among whole numbers
        if middle * partition.count // (2 * total) == partition.index - 1:
            mine.append(unit)
        before += weight
    return tuple(mine)
