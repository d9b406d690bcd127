"""Pictures for the reviewers' browser: served from where they lie, or uploaded once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from label_studio.assets import Assets
from label_studio.storages import Storages
from schemas.errors import PantallaError

ImageOf = Callable[[str], bytes]
"""Screen id to the bytes of the picture a person may see: PNG, JPEG, WebP or GIF."""


class UnshowableImageError(PantallaError):
    """A picture is of a kind that browsers do not show."""


class UncoveredError(PantallaError):
    """What must be hidden on a picture is not known, so nobody may see it."""


class Places(Protocol):
    """What is known of the pictures of a dataset, beside their bytes."""

    def key(self, screen_id: str) -> str:
        """The name its copies carry; another one where parts of the picture are covered."""

    def is_masked(self, screen_id: str) -> bool:
        """Whether parts are covered, so that the original must never be shown."""

    def served(self, screen_id: str) -> str | None:
        """The address the server itself reaches the picture at, or None: then it is uploaded."""


class Uploaded:
    """The places of pictures that are all uploaded as they are."""

    def key(self, screen_id: str) -> str:
        """The screen id."""
        return screen_id

    def is_masked(self, screen_id: str) -> bool:  # noqa: ARG002 - a protocol's signature
        """Never."""
        return False

    def served(self, screen_id: str) -> str | None:  # noqa: ARG002 - a protocol's signature
        """Nowhere."""
        return None


class ScreenImages:
    """Addresses of screens for one review project."""

    def __init__(
        self,
        assets: Assets,
        image_of: ImageOf,
        places: Places | None = None,
        storages: Storages | None = None,
    ) -> None:
        self._assets = assets
        self._image_of = image_of
        self._places = places or Uploaded()
        self._storages = storages
        self.uploaded = 0

    def address(self, screen_id: str) -> str:
        """The address of a screen's picture, uploading it the first time where it must be.

        Raises:
            PantallaError: if the picture cannot be read, or browsers do not show its kind.
            LabelStudioError: if the server does not take it.
        """
        served = self._places.served(screen_id)
        if served is not None and self._storages is not None:
            self._storages.cover(served)
            return served
        key = self._places.key(screen_id)
        known = self._assets.find(key)
        if known is None:
            data = self._image_of(screen_id)
            known = self._assets.keep(key, data, *image_kind(data))
            self.uploaded += 1
        return known

    def is_safe(self, screen_id: str, address: object) -> bool:
        """Whether a picture already on the server shows nothing that is to be covered."""
        masked = self._places.is_masked(screen_id)
        return not masked or self._places.key(screen_id) in str(address)


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
