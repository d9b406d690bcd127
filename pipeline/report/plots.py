"""Small plots as plain numbers; the template turns them into inline SVG. y grows downwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.codes import Route

WIDTH, HEIGHT = 400.0, 120.0
"""Size of the drawing area of the histogram, in SVG units."""

_ORDER = (Route.ACCEPT, Route.AUDIT, Route.REVIEW, Route.REJECT)


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle in SVG units; `code` names its colour, `title` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    code: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """One labelled bar of a tally; `share` is of the largest, 0..1."""

    code: str
    amount: int
    share: float


def histogram_bars(histogram: Mapping[str, Sequence[int]]) -> list[Bar]:
    """Stacked bars of samples by probability over 0..1, one colour per route.

    Args:
        histogram: route -> samples in each of the equal bins; all of one length.
    """
    routes: list[str] = [route for route in _ORDER if route in histogram]
    routes += [route for route in sorted(histogram) if route not in _ORDER]
    bins = max((len(values) for values in histogram.values()), default=0)
    tallest = max((sum(values[i] for values in histogram.values()) for i in range(bins)), default=0)
    bars: list[Bar] = []
    for i in range(bins if tallest else 0):
        top = HEIGHT
        for route in routes:
            amount = histogram[route][i]
            if amount:
                height = HEIGHT * amount / tallest
                top -= height
                title = f"{i / bins:.2f} to {(i + 1) / bins:.2f}: {amount:,} {route}"
                width = WIDTH / bins
                bars.append(Bar(width * i + 1, top, width - 2, height, route, title))
    return bars


def tally_lines(tally: Mapping[str, int]) -> list[Line]:
    """The codes of a tally, most frequent first, without those that never occur."""
    shown = sorted(((n, code) for code, n in tally.items() if n), key=lambda p: (-p[0], p[1]))
    largest = max((amount for amount, _ in shown), default=1)
    return [Line(code, amount, amount / largest) for amount, code in shown]
