"""Stored samples as readable text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.colours import css, route_colour
from pipeline.dataset import Dataset
from pipeline.report.words import ROUTE_WORDS, STATUS_WORDS
from pipeline.rows import SampleRow, ScreenRow
from pipeline.terminal import output, show
from schemas.geometry import Box, Point
from schemas.records import Item

_ID_SHOWN = 12
_ITEMS_SHOWN = 40


def print_list(
    dataset: Dataset, limit: int, route: str | None = None, console: Console | None = None
) -> None:
    """Print the first `limit` samples, one a line, with enough of their ids to show them."""
    console = console or output()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("sample", "route", "prob.", "answer", "screen"):
        table.add_column(name, no_wrap=True)
    table.add_column("instruction", overflow="fold")
    fitting = (s for s in dataset.samples() if route is None or s.route == route)
    for sample in islice(fitting, limit):
        table.add_row(
            sample.sample_id[:_ID_SHOWN],
            Text(sample.route, style=css(route_colour(sample.route))),
            f"{sample.probability:.2f}",
            sample.status,
            Text(sample.member),
            Text(sample.instruction),
        )
    if table.row_count == 0:
        console.print("No sample fits." if route else "No samples are committed yet.")
        return
    show(table, console)
    total = dataset.describe().counts.samples
    first = dataset.uri
    console.print(
        f"\n{table.row_count} of {total:,} samples. One of them: pantalla show {first} SAMPLE",
        markup=False,
        soft_wrap=True,
    )


def print_sample(sample: SampleRow, screen: ScreenRow, console: Console | None = None) -> None:
    """Print everything that is known of a sample and where its pixels are."""
    console = console or output()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in (*_about(sample), *_answer(sample), *_origin(sample, screen)):
        table.add_row(name, value if isinstance(value, Text) else Text(value))
    show(table, console)


def _about(sample: SampleRow) -> Iterator[tuple[str, Text | str]]:
    yield "Sample", sample.sample_id
    yield "Asked", f"{sample.instruction}  ({sample.kind}, from {sample.origin})"
    words = ROUTE_WORDS.get(sample.route, sample.route)
    yield "Route", Text(f"{sample.route}: {words}", style=css(route_colour(sample.route)))
    flags = f"  flags: {', '.join(sample.flags)}" if sample.flags else ""
    yield "Status", f"{sample.status}: {STATUS_WORDS.get(sample.status, sample.status)}{flags}"
    signals = sample.signals
    yield (
        "Certainty",
        f"{sample.probability:.3f} by {sample.probability_source}; "  # noqa: ISC004 - one value
        f"agreement {signals.agreement:.2f}, dispersion {signals.dispersion:.2f}, "
        f"{signals.regions} region(s), {signals.usable} of {signals.total} answers usable",
    )


def _answer(sample: SampleRow) -> Iterator[tuple[str, str]]:
    size = f"{sample.size.width}x{sample.size.height}"
    for number, item in enumerate(sample.items[:_ITEMS_SHOWN]):
        frame = f"  (pixels of the original {size})" if number == 0 else ""
        yield "Where" if number == 0 else "", _item(item) + frame
    if len(sample.items) > _ITEMS_SHOWN:
        yield "", f"and {len(sample.items) - _ITEMS_SHOWN} more"
    if sample.truth_present is not None:
        verdict = {True: ", so the answer is right", False: ", so the answer is wrong", None: ""}
        boxes = "; ".join(_box(known.box) for known in sample.truth[:5]) or "not on the screen"
        yield "Truth", boxes + verdict[sample.truth_hit]
    yield "Prompt", sample.prompt
    for number, answer in enumerate(sample.answers, start=1):
        status = sample.candidates[number - 1].status if number <= len(sample.candidates) else ""
        yield f"Answer {number}", answer.text or "(empty)"
        yield "", f"{answer.token_count} tokens, {answer.finish_reason}  {status}".rstrip()


def _origin(sample: SampleRow, screen: ScreenRow) -> Iterator[tuple[str, str]]:
    seen = sample.seen
    yield "Model", f"{sample.model} at {sample.model_revision} ({sample.model_licence})"
    yield "", f"profile {sample.profile}, prompt version {sample.prompt_version}"
    yield "", f"{sample.engine} {sample.engine_version}, saw {seen.seen.width}x{seen.seen.height}"
    place = f" at byte {screen.byte_offset}" if screen.byte_offset is not None else ""
    place += f", row {screen.row}" if screen.row is not None else ""
    yield "Pixels", f"{screen.shard}: {screen.member}{place}"
    known = (screen.app, screen.locale, screen.licence, screen.page_title)
    yield "", ", ".join(value for value in known if value) or "origin unknown"
    yield "", f"SHA-256 {screen.screen_id}"


def _item(item: Item) -> str:
    parts = [
        _point(item.point) if item.point is not None else "",
        _box(item.box) if item.box is not None else "",
        item.role.value if item.role is not None else "",
        f"«{item.label}»" if item.label else "",
    ]
    return " ".join(part for part in parts if part)


def _point(point: Point) -> str:
    return f"point ({point.x:.1f}, {point.y:.1f})"


def _box(box: Box) -> str:
    return f"box ({box.x1:.1f}, {box.y1:.1f}, {box.x2:.1f}, {box.y2:.1f})"
