"""What a dataset could not use: its rejects, grouped, with the command that takes one out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.dataset import Dataset
from schemas.codes import RejectReason, Stage
from schemas.errors import ConfigError

_ORDER = {stage.value: place for place, stage in enumerate(Stage)}
_COLUMNS = (
    "shard",
    "member",
    "stage",
    "reason",
    "detail",
    "screen_id",
    "sample_id",
    "instruction",
)


@dataclass(frozen=True, slots=True)
class RejectRow:
    """One row of `rejects`; the fields are the columns of the table.

    Attributes:
        member: name in the shard; None stands for the shard as a whole.
        screen_id: SHA-256 of the bytes, where there were any.
    """

    shard: str
    member: str | None
    stage: str
    reason: str
    detail: str
    screen_id: str | None
    sample_id: str | None
    instruction: str | None

    @property
    def is_file(self) -> bool:
        """Whether there is something in the shard to look at."""
        return self.member is not None and self.reason != RejectReason.QUERY_UNMATCHED


@dataclass(slots=True)
class RejectGroup:
    """The rejects of one reason at one stage; `example` is the first that can be looked at."""

    stage: str
    reason: str
    example: RejectRow
    count: int = 0


def reject_rows(dataset: Dataset, reason: str | None = None) -> Iterator[RejectRow]:
    """Every reject, or those of one reason, in commit order.

    Raises:
        ConfigError: if there is no such reason.
        DatasetError: if a committed part cannot be read.
    """
    if reason is not None and reason not in set(RejectReason):
        raise ConfigError(f"no reason `{reason}`; there are: {', '.join(RejectReason)}")
    for _, part in dataset.parts("rejects", _COLUMNS):
        for row in part.to_pylist():
            if reason is None or row["reason"] == reason:
                yield RejectRow(**row)


def group_rejects(rows: Iterator[RejectRow]) -> list[RejectGroup]:
    """Rows by stage and reason, in the order of the stages, the largest group first."""
    groups: dict[tuple[str, str], RejectGroup] = {}
    for row in rows:
        group = groups.setdefault((row.stage, row.reason), RejectGroup(row.stage, row.reason, row))
        group.count += 1
        if row.is_file and not group.example.is_file:
            group.example = row
    return sorted(
        groups.values(), key=lambda g: (_ORDER.get(g.stage, len(_ORDER)), -g.count, g.reason)
    )


def take_out_command(dataset: str, row: RejectRow, options: Sequence[str] = ()) -> str | None:
    """The command line that takes a reject out of its shard, or None where nothing is there.

    Args:
        dataset: as the person named it.
        row: the reject.
        options: further options of the same call, such as endpoints.
    """
    if not row.is_file or row.member is None:
        return None
    words = ["pantalla", "rejects", dataset, "--take-out", row.shard, row.member, *options]
    return " ".join(shell_word(word) for word in words)


def shell_word(text: str) -> str:
    """`text` as one word of a shell; control characters are spelt out, never sent to a terminal."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = "".join(_escaped(sign) for sign in text)
    return f"$'{escaped}'"


def _escaped(sign: str) -> str:
    if sign in "\\'":
        return f"\\{sign}"
    return sign if sign.isprintable() else "".join(f"\\x{byte:02x}" for byte in sign.encode())
