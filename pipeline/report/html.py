"""`report.html`: one page that needs nothing but itself, safe to open whatever the data says.

Everything is escaped by the template engine, and a content policy allows no request and no script
but the page's own, whose hash it names: an instruction that holds markup is only ever text.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

import jinja2

from pipeline.colours import ROUTE_COLOURS, css
from pipeline.report import words
from pipeline.report.figures import RunFigures
from pipeline.report.gallery import Card, RejectLine
from pipeline.report.plots import HEIGHT, WIDTH, histogram_bars, tally_lines

_TEXT_LIMIT = 4000


def render_page(
    figures: RunFigures,
    cards: Sequence[Card],
    hidden: int,
    rejects: Sequence[RejectLine] = (),
    notice: str | None = None,
) -> str:
    """The page as text.

    Args:
        figures: of the run.
        cards: the screens to show.
        hidden: how many more there are.
        rejects: the first rejects.
        notice: a warning of the model profile, shown on top.
    """
    environment = _environment()
    script = _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    samples = [sample for card in cards for sample in card.samples]
    return environment.get_template("report.html.j2").render(
        figures=figures,
        cards=cards,
        hidden=hidden,
        rejects=rejects,
        notice=notice,
        style=_asset("style.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        route_colours={route: css(colour) for route, colour in ROUTE_COLOURS.items()},
        routes=sorted({sample.route for sample in samples}),
        statuses=sorted({sample.status for sample in samples}),
        kinds=sorted({sample.kind for sample in samples}),
        apps=sorted({card.screen.app or "" for card in cards}),
        bars=histogram_bars(figures.histogram),
        plot_width=WIDTH,
        plot_height=HEIGHT,
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=words.duration,
        byte_size=words.byte_size,
        number=words.number,
        percent=words.percent,
        share_text=words.share_text,
        clip=_clip,
        tally=tally_lines,
    )
    environment.globals.update(
        route_words=words.ROUTE_WORDS, status_words=words.STATUS_WORDS, money=words.money
    )
    return environment


def _asset(name: str) -> str:
    return (resources.files("pipeline.report") / "templates" / name).read_text(encoding="utf-8")


def _clip(text: str) -> str:
    left = len(text) - _TEXT_LIMIT
    return text if left <= 0 else f"{text[:_TEXT_LIMIT]}\n... and {left:,} characters more"
