"""The rejects of a dataset as text for a person and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from pipeline.rejects import RejectGroup, RejectRow, take_out_command
from pipeline.terminal import output, visible

_DETAIL_CHARS = 400


def print_groups(
    dataset: str,
    groups: Sequence[RejectGroup],
    options: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Print each group with its count, an example, and how to take that out."""
    console = console or output()
    if not groups:
        console.print(Text(f"{dataset}: nothing was rejected"))
    for group in groups:
        heading = Text.assemble((group.reason, "bold"), f"  at {group.stage}  {group.count:,}")
        _line(console, heading)
        _print_row(console, group.example)
        command = take_out_command(dataset, group.example, options)
        if command:
            _line(console, Text(f"  {command}", style="cyan"))
        console.print()


def print_rows(
    rows: Sequence[RejectRow], limit: int, total: int, console: Console | None = None
) -> None:
    """Print every row, and how many more than `limit` there are."""
    console = console or output()
    for row in rows:
        _print_row(console, row)
    if total > limit:
        _line(console, Text(f"  and {total - limit:,} more; --limit shows more of them"))


def rejects_json(
    dataset: str,
    groups: Sequence[RejectGroup],
    rows: Sequence[RejectRow],
    options: Sequence[str] = (),
) -> str:
    """Indented JSON: `dataset`, `count`, `groups`, and `rejects` where single ones were asked for.

    Each reject has the columns of the table and `take_out`, a command line or null.
    """

    def shown(row: RejectRow) -> dict[str, str | None]:
        return {**asdict(row), "take_out": take_out_command(dataset, row, options)}

    content = {
        "dataset": dataset,
        "count": sum(group.count for group in groups),
        "groups": [
            {
                "stage": group.stage,
                "reason": group.reason,
                "count": group.count,
                "example": shown(group.example),
            }
            for group in groups
        ],
        "rejects": [shown(row) for row in rows],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _print_row(console: Console, row: RejectRow) -> None:
    where = row.shard if row.member is None else f"{row.shard}  {row.member}"
    _line(console, Text(f"  {visible(where)}"))
    _line(console, Text(f"    {visible(row.detail, _DETAIL_CHARS)}"))
    if row.instruction is not None:
        _line(console, Text(f"    asked: {visible(row.instruction, _DETAIL_CHARS)}"))
    if row.screen_id is not None:
        _line(console, Text(f"    SHA-256 {row.screen_id}"))


def _line(console: Console, text: Text) -> None:
    """One line as it is: a name must be copied whole, wherever the window ends."""
    console.print(text, soft_wrap=True)
