"""The reviewers' written guide in Spanish, shown by Label Studio as the project's instructions."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import jinja2

from label_studio.interface import CLICK_TEXT, HOTKEYS
from schemas.codes import Verdict


@lru_cache(maxsize=1)
def guide_html() -> str:
    """The guide as HTML, with the texts and keys of the interface filled in."""
    source = files("label_studio").joinpath("guide_es.html").read_text(encoding="utf-8")
    template = jinja2.Template(source, undefined=jinja2.StrictUndefined, autoescape=True)
    return str(
        template.render(
            text={verdict.value: verdict.spanish for verdict in Verdict},
            key={verdict.value: HOTKEYS[verdict] for verdict in Verdict},
            click=CLICK_TEXT,
        )
    )
