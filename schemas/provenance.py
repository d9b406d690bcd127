"""Where a screen comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a screen comes from, as its sidecar says; None = unknown."""

    app: str | None = None
    app_version: str | None = None
    licence: str | None = None
    locale: str | None = None
    html_lang: str | None = None
    page_title: str | None = None
    url_path: str | None = None
    color_scheme: str | None = None
    device_pixel_ratio: float | None = None
    source: str | None = None
    task: str | None = None
    step: int | None = None
