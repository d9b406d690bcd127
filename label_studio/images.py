"""Pictures for the reviewers' browser: each screen uploaded once, found again by its id."""

from __future__ import annotations

import re
from collections.abc import Callable

from label_studio.client import StudioClient
from schemas.errors import PantallaError

ImageOf = Callable[[str], bytes]
"""Screen id to the bytes of its picture as it was found: PNG, JPEG, WebP or GIF."""

# The server puts eight hex digits of its own before the name that was sent.
_STORED_NAME = re.compile(r"^[0-9a-f]{8}-(?P<screen_id>[0-9a-f]+)\.[a-z]+$")


class UnshowableImageError(PantallaError):
    """A picture is of a kind that browsers do not show."""


class ScreenImages:
    """The pictures of one assets project; knows what is there, uploads what is not."""

    def __init__(self, client: StudioClient, assets_id: int, image_of: ImageOf) -> None:
        self._client = client
        self._assets_id = assets_id
        self._image_of = image_of
        self._known = stored_screens(client.uploads(assets_id))
        self.uploaded = 0

    def address(self, screen_id: str) -> str:
        """The address of a screen's picture on the server, uploading it the first time.

        Raises:
            PantallaError: if the picture cannot be read, or browsers do not show its kind.
            LabelStudioError: if the server does not take it.
        """
        if screen_id not in self._known:
            data = self._image_of(screen_id)
            suffix, media_type = image_kind(data)
            self._known[screen_id] = self._client.upload(
                self._assets_id, f"{screen_id}.{suffix}", data, media_type
            )
            self.uploaded += 1
        return self._known[screen_id]


def stored_screens(uploads: dict[str, str]) -> dict[str, str]:
    """Screen id to address, from stored file names; of several copies the first by name."""
    known: dict[str, str] = {}
    for name in sorted(uploads):
        match = _STORED_NAME.match(name)
        if match:
            known.setdefault(match["screen_id"], uploads[name])
    return known


def image_kind(data: bytes) -> tuple[str, str]:
    """File suffix and media type of a picture, by its first bytes.

    Raises:
        UnshowableImageError: if it is none that browsers show.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png", "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpg", "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp", "image/webp"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif", "image/gif"
    raise UnshowableImageError(f"no kind of picture that browsers show: starts with {data[:8]!r}")
