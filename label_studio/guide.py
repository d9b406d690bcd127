"""The reviewers' written guide in Spanish, shown by Label Studio as the project's instructions.

Label Studio keeps only what it holds for harmless in it: pictures inside the text (`data:`, SVG
tags) are thrown away, pictures by address are kept. On the server they are therefore files of the
project that keeps our pictures; in the page of `pantalla review guide` they are inside.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from importlib.resources import files

import jinja2
from markupsafe import Markup

from label_studio.interface import CLICK_TEXT, HOTKEYS
from label_studio.words import WORDS, Variant, capitalized
from schemas.codes import Verdict
from schemas.ids import content_id

PICTURES = ("correcta", "corregida", "ausente", "ambigua", "ajuste")
"""Drawings of the guide, by name."""

PictureAddress = Callable[[str], str]
"""Name of a drawing to the address a browser loads it from."""

_STAMP = re.compile(r"\n<p>Guía de Pantalla, (?P<variant>[\w-]+), (?P<mark>[0-9a-f]{10})\.</p>$")
_PAGE = """<!doctype html>
<html lang="{{ variant }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Guía para revisar</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
td { padding: 2px 14px 2px 0; vertical-align: top; }
</style>
</head>
<body>
{{ guide }}
</body>
</html>
"""


def guide_html(
    variant: Variant = Variant.NEUTRAL, picture_address: PictureAddress | None = None
) -> str:
    """The guide as HTML, with the texts and keys of the interface filled in.

    Its last line names the variant and a hash of all above, so that a guide a person has edited on
    the server is told from one that an older version wrote (`is_untouched`).

    Args:
        variant: whose Spanish it speaks.
        picture_address: where the drawings are; default: inside the text.
    """
    source = files("label_studio").joinpath("guide_es.html").read_text(encoding="utf-8")
    template = jinja2.Template(source, undefined=jinja2.StrictUndefined, autoescape=True)
    address = picture_address or _inside

    def picture(name: str, about: str) -> Markup:
        return Markup('<img src="{}" alt="{}">').format(address(name), about)

    body = str(
        template.render(
            w=WORDS[variant],
            cap=capitalized,
            picture=picture,
            text={verdict.value: verdict.spanish for verdict in Verdict},
            key={verdict.value: HOTKEYS[verdict] for verdict in Verdict},
            click=CLICK_TEXT,
        )
    )
    return f"{body}\n<p>Guía de Pantalla, {variant}, {content_id(body, length=10)}.</p>"


def is_untouched(guide: str) -> bool:
    """Whether a guide found on a server is word for word one that this program wrote."""
    stamp = _STAMP.search(guide)
    return stamp is not None and stamp["mark"] == content_id(guide[: stamp.start()], length=10)


def guide_page(variant: Variant = Variant.NEUTRAL) -> str:
    """The guide as one self-contained HTML page."""
    page = jinja2.Template(_PAGE, undefined=jinja2.StrictUndefined)
    return str(page.render(variant=variant.value, guide=guide_html(variant)))


def picture_svg(name: str) -> bytes:
    """One drawing of the guide as SVG."""
    return files("label_studio").joinpath("guide_pictures", f"{name}.svg").read_bytes()


def _inside(name: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture_svg(name)).decode()
