"""The estimate of a job as a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.estimate import Estimate
from pipeline.report.words import byte_size, duration, money, number
from pipeline.terminal import output, show

_MAX_SHARDS = 40


def print_estimate(found: Estimate, console: Console | None = None) -> None:
    """Print the shards, then what is left to do and what it may cost."""
    console = console or output()
    show(_shards(found), console)
    console.print()
    show(_totals(found), console)


def _shards(found: Estimate) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("shard", overflow="fold")
    table.add_column("kind")
    for name in ("size", "units", "done", "screens"):
        table.add_column(name, justify="right")
    for shard in found.shards[:_MAX_SHARDS]:
        table.add_row(
            Text(shard.uri),
            shard.kind,
            byte_size(shard.byte_size) if shard.byte_size else "",
            number(shard.units),
            number(shard.units_done),
            number(shard.screens),
        )
    more = len(found.shards) - _MAX_SHARDS
    if more > 0:
        table.add_row(f"and {more:,} more", "", "", "", "", "")
    return table


def _totals(found: Estimate) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    left = found.units - found.units_done
    table.add_row("Dataset", Text(found.dataset))
    table.add_row(
        "Units", f"{found.units:,}: {found.units_done:,} finished already, {left:,} to do"
    )
    table.add_row("Screens", f"{found.screens:,}, {found.screens_left:,} of them to do")
    table.add_row("Pixels", _pixels(found))
    table.add_row("Queries", f"{_about(found)}{found.queries:,}")
    table.add_row("To generate", f"{_about(found)}{found.answers:,} answers")
    table.add_row("Tokens", _tokens(found))
    table.add_row("Time", _time(found))
    table.add_row("Cost", _cost(found))
    for reason, amount in found.problems.items():
        table.add_row("Will reject", f"{amount:,} x {reason}")
    for reason, amount in found.refused.items():
        table.add_row("Will reject", f"{_about(found)}{amount:,} x {reason}, by their headers")
    if found.conflict:
        table.add_row("Refused", Text(found.conflict, style="bold red"))
    return table


def _about(found: Estimate) -> str:
    """Nothing where every screen was looked at, else that it is an extrapolation."""
    return "about " if found.looked_at < found.screens else ""


def _pixels(found: Estimate) -> str:
    if found.megapixels is None:
        return "unknown: no header could be read"
    text = f"{_about(found)}{found.megapixels:,.1f} megapixels"
    some = f", from {found.looked_at:,} screens that were looked at"
    return text + (some if _about(found) else "")


def _tokens(found: Estimate) -> str:
    if found.tokens_in is None:
        into = "in: unknown, the profile does not say what an image takes"
    else:
        into = f"about {found.tokens_in:,} in"
    if found.tokens_out is None:
        return f"{into}, at most {found.tokens_out_limit:,} out"
    return f"{into}, about {found.tokens_out:,} out (answers as long as before)"


def _time(found: Estimate) -> str:
    if found.screens_left == 0:
        return "nothing to do"
    if found.seconds is None:
        return "unknown: no run into this dataset has been timed; or set cost.tokens_per_second"
    if found.screens_per_second is None:
        return f"about {duration(found.seconds)}, at cost.tokens_per_second"
    rate = number(found.screens_per_second, 2)
    return f"about {duration(found.seconds)}, at the last run's {rate} screens/s"


def _cost(found: Estimate) -> str:
    if found.screens_left == 0:
        return "nothing to do"
    if found.cost is None:
        return "unknown: it needs cost.machine_hour, and an earlier run or cost.tokens_per_second"
    return f"about {money(found.cost, found.currency)}"
