"""The project that keeps our pictures on a server, found by title or made.

The server takes uploads only for interfaces with one variable; that of a review has several.
"""

from __future__ import annotations

import re

from label_studio.client import StudioClient
from label_studio.failures import explained
from label_studio.guide import picture_svg
from schemas.errors import LabelStudioError
from schemas.ids import sha256_hex

_SUFFIX = " · imágenes"
_MAX_TITLE = 50
_CONFIG = '<View><Image name="image" value="$image"/></View>'
_DESCRIPTION = "Guarda las imágenes del proyecto de revisión. No tiene tareas; no debe borrarse."
_OWNER = re.compile(r"del proyecto de revisión (?P<project_id>\d+)\.")
# The server puts eight hex digits of its own before the name that was sent.
_STORED_NAME = re.compile(r"^[0-9a-f]{8}-(?P<key>[\w-]+)\.[a-z]+$")


class Assets:
    """Pictures kept on the server by key; knows what is there, uploads what is not.

    Attributes:
        project_id: of the project that keeps them.
        uploaded: pictures sent by this object.
    """

    def __init__(self, client: StudioClient, project_id: int) -> None:
        self._client = client
        self.project_id = project_id
        self._known = stored_pictures(client.uploads(project_id))
        self.uploaded = 0

    def find(self, key: str) -> str | None:
        """The address of the picture kept under `key`, or None."""
        return self._known.get(key)

    def keep(self, key: str, data: bytes, suffix: str, media_type: str) -> str:
        """Upload a picture under `key`, unless there is one; returns its address on the server."""
        if key not in self._known:
            name = f"{key}.{suffix}"
            self._known[key] = self._client.upload(self.project_id, name, data, media_type)
        return self._known[key]

    def guide_picture(self, name: str) -> str:
        """The address of a drawing of the guide; a changed drawing is another file."""
        data = picture_svg(name)
        return self.keep(f"guia-{name}-{sha256_hex(data)[:10]}", data, "svg", "image/svg+xml")


def stored_pictures(uploads: dict[str, str]) -> dict[str, str]:
    """Key to address, from stored file names; of several copies the first by name."""
    known: dict[str, str] = {}
    for name in sorted(uploads):
        match = _STORED_NAME.match(name)
        if match:
            known.setdefault(match["key"], uploads[name])
    return known


def find_one(client: StudioClient, title: str) -> int | None:
    """The id of the project with this title, or None.

    Raises:
        LabelStudioError: several projects have it.
    """
    ids = client.project_ids(title)
    if len(ids) > 1:
        raise LabelStudioError(
            f"{len(ids)} projects are called {title!r} (ids {ids}): rename all but one"
        )
    return ids[0] if ids else None


def find_assets(client: StudioClient, title: str) -> int | None:
    """The project that keeps the pictures of the review project `title`, or None."""
    return find_one(client, _title(title))


def make_assets(client: StudioClient, title: str) -> int:
    """Make the project that keeps the pictures of the review project `title`."""
    with explained("making the project for pictures"):
        made = client.sdk.projects.create(
            title=_title(title),
            description=_DESCRIPTION,
            label_config=_CONFIG,
            request_options={"max_retries": 0},
        )
    return int(made.id)


def _title(title: str) -> str:
    return title[: _MAX_TITLE - len(_SUFFIX)] + _SUFFIX


def review_project_of(client: StudioClient, assets_id: int) -> int | None:
    """The review project these pictures belong to, as was written down, or None."""
    with explained(f"reading project {assets_id}"):
        match = _OWNER.search(client.sdk.projects.get(assets_id).description or "")
    return int(match["project_id"]) if match else None


def belongs_to(client: StudioClient, assets_id: int, project_id: int) -> None:
    """Write down which review project the pictures belong to: titles can be changed."""
    if review_project_of(client, assets_id) == project_id:
        return
    about = _DESCRIPTION.replace("de revisión.", f"de revisión {project_id}.")
    with explained("describing the project for pictures"):
        client.sdk.projects.update(assets_id, description=about, request_options={"max_retries": 0})
