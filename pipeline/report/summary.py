"""The figures as a readable text, coloured on a terminal and plain in a file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.colours import css, route_colour
from pipeline.report.figures import RunFigures, Speeds
from pipeline.report.words import (
    ROUTE_WORDS,
    STATUS_WORDS,
    byte_size,
    count_words,
    duration,
    money,
    number,
    percent,
    share_text,
)
from pipeline.terminal import show

_BAR = 24


def print_summary(figures: RunFigures, console: Console) -> None:
    """Print the summary on `console`."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(figures):
        table.add_row(name, value)
    show(table, console)


def summary_text(figures: RunFigures) -> str:
    """The summary without colours, for files and logs."""
    sink = io.StringIO()
    print_summary(figures, Console(file=sink, width=110, no_color=True, highlight=False))
    return sink.getvalue()


def _lines(figures: RunFigures) -> Iterator[tuple[str, Text | str]]:
    counts, stats, speeds = figures.counts, figures.stats, figures.speeds
    yield "Dataset", f"{figures.dataset} ({count_words(figures.units, 'unit')})"
    yield "Units", f"{stats.units_done:,} done by this run, {stats.units_reused:,} reused"
    yield "Screens", _proof(counts.members, "member", counts.screens, counts.members_rejected)
    yield "Samples", _proof(counts.queries, "query", counts.samples, counts.queries_rejected)
    yield "", ""
    routes = _named(counts.routes, ROUTE_WORDS)
    statuses = _named(counts.statuses, STATUS_WORDS)
    rejects = _named(counts.rejects, {})
    width = max((len(name) for _, name, _ in (*routes, *statuses, *rejects)), default=0)
    yield from _bars("Routes", routes, width, coloured=True)
    yield from _bars("Answers", statuses, width)
    yield from _bars("Rejects", rejects, width)
    yield "", ""
    yield "Accuracy", f"grounding: {share_text(figures.accuracy.grounding)}"
    yield from _accuracy_details(figures)
    yield "Tokens", f"{number(counts.prompt_tokens)} in, {number(counts.output_tokens)} out"
    yield "Time", f"{duration(stats.wall_seconds)}, engine start {_engine_start(figures)}"
    if stats.units_done:
        yield "Speed", _speed(speeds)
        yield "Reused", _reused(speeds)
        yield "Memory", f"{byte_size(stats.peak_memory_bytes)} at the peak"
    yield from _cost(figures)
    yield from _push(figures)


def _proof(total: int, one: str, out: int, rejected: int) -> str:
    what = {"member": ("member", "members"), "query": ("query", "queries")}[one]
    listed = count_words(total, *what)
    return f"{out:,}   ({listed} = {out:,} out + {rejected:,} rejected)"


def _named(tally: Mapping[str, int], words: Mapping[str, str]) -> list[tuple[str, str, int]]:
    """Code, words and amount of what occurs, most frequent first."""
    shown = sorted(((code, n) for code, n in tally.items() if n), key=lambda p: (-p[1], p[0]))
    return [(code, words.get(code, code.replace("_", " ")), n) for code, n in shown]


def _bars(
    title: str, lines: Sequence[tuple[str, str, int]], width: int, *, coloured: bool = False
) -> Iterator[tuple[str, Text]]:
    for code, name, amount in lines:
        line = Text(f"{name:<{width}}  {amount:>7,}  ")
        bar = "█" * max(1, round(_BAR * amount / lines[0][2]))
        line.append(bar, style=css(route_colour(code)) if coloured else "dim")
        yield title, line
        title = ""


MOST_SHARDS = 12
"""Shards whose accuracy is told one by one; more are in `report.json` only."""


def _accuracy_details(figures: RunFigures) -> Iterator[tuple[str, str]]:
    accuracy = figures.accuracy
    for route, share in accuracy.by_route.items():
        if len(accuracy.by_route) > 1:
            yield "", f"{ROUTE_WORDS.get(route, route)}: {share_text(share)}"
    if 1 < len(accuracy.by_shard) <= MOST_SHARDS:
        for shard, share in accuracy.by_shard.items():
            yield "", f"{PurePosixPath(shard).name}: {share_text(share)}"
    found = accuracy.localization
    if found.samples:
        screens = count_words(found.samples, "screen")
        boxes = f"{found.matched:,} of {found.true:,} found, {found.found:,} boxes given"
        yield "", f"localization: F1 {number(found.f1, 3)} at IoU 0.5 over {screens} ({boxes})"


def _speed(speeds: Speeds) -> str:
    return (
        f"{number(speeds.screens_per_second, 2)} screens/s, "
        f"{number(speeds.output_tokens_per_second)} tokens/s out, "
        f"{number(speeds.total_tokens_per_second)} tokens/s in and out, "
        f"engine busy {percent(speeds.engine_busy_share)}"
    )


def _reused(speeds: Speeds) -> str:
    """What the engine's caches saved; what it does not tell is unknown, not nothing."""
    shares = {
        "prompt tokens": speeds.cached_share,
        "processed images": speeds.processor_hit_share,
        "encoded images": speeds.encoder_hit_share,
    }
    return ", ".join(
        f"{what} {'unknown' if share is None else percent(share)}" for what, share in shares.items()
    )


def _engine_start(figures: RunFigures) -> str:
    seconds = figures.stats.engine_start_seconds
    return duration(seconds) if figures.stats.units_done else "not needed"


def _cost(figures: RunFigures) -> Iterator[tuple[str, str]]:
    cost = figures.cost
    if cost is None:
        return
    unit = cost.currency
    each = f"{money(cost.per_screen, unit)} a screen"
    accepted = f"{money(cost.per_accepted, unit)} an accepted sample"
    yield "Cost", f"{money(cost.total, unit)} for this run, {each}, {accepted}"


def _push(figures: RunFigures) -> Iterator[tuple[str, str]]:
    push = figures.stats.push
    if push is None:
        return
    if push.project:
        text = f"{count_words(push.tasks_new, 'new task')}, {push.tasks_present:,} there already"
        yield "Label Studio", f"{text}: {push.project}"
    if push.pending:
        yield "", f"{count_words(push.pending, 'review row')} waiting; `pantalla push` sends them"
    if push.note:
        yield "", push.note
