"""The pictures people see: as they were asked about, with what must be hidden hidden."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import quote

from PIL import Image, ImageDraw

from label_studio.images import UncoveredError, UnshowableImageError, image_kind
from label_studio.storages import LOCAL_ADDRESS
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.rows import ScreenRow
from schemas.geometry import Box
from schemas.ids import content_id
from schemas.records import ShardKind
from transforms.storage import Storage, join_uri, normalize_uri, storage_for

MASK_COLOUR = (0, 0, 0)


def picture_reader(dataset: Dataset) -> Callable[[str], bytes]:
    """Screen id to a picture that browsers show as it was asked about, nothing hidden."""
    return Pictures(dataset, LabelStudioConfig())


@dataclass
class Pictures:
    """The pictures of a dataset, and where the server finds them: `ImageOf` and `Places`.

    Attributes:
        dataset: committed screens.
        studio: how pictures are served, and whether masks are drawn.
    """

    dataset: Dataset
    studio: LabelStudioConfig
    _screens: dict[str, ScreenRow] = field(default_factory=dict)
    _served: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for screen in self.dataset.screens():
            self._screens.setdefault(screen.screen_id, screen)

    def __call__(self, screen_id: str) -> bytes:
        """The bytes of a picture: the original where that is sure and nothing is hidden.

        Raises:
            UncoveredError: what is to be hidden on it is not known.
            DatasetError, StorageError: its shard cannot be read, or has changed.
        """
        screen = self._screens[screen_id]
        masks = self._masks(screen)
        data = self.dataset.pixels_of(screen)
        if not masks and _browsers_agree(screen, data):
            return data
        sink = io.BytesIO()
        covered(self.dataset.picture(screen), masks).save(sink, "PNG")
        return sink.getvalue()

    def key(self, screen_id: str) -> str:
        """The screen id; with masks, their hash too, so that no earlier copy is taken for it."""
        masks = self._masks(self._screens[screen_id])
        if not masks:
            return screen_id
        return f"{screen_id}-m{content_id([list(box.corners) for box in masks], length=10)}"

    def is_masked(self, screen_id: str) -> bool:
        """Whether parts of the picture are hidden."""
        return bool(self._masks(self._screens[screen_id]))

    def served(self, screen_id: str) -> str | None:
        """Where the server itself reaches the picture, writing a copy there where one is needed.

        Raises:
            UncoveredError: what is to be hidden on it is not known.
            DatasetError, StorageError: it cannot be read, or its copy cannot be written.
        """
        if self.studio.images == "upload":
            return None
        if screen_id not in self._served:
            self._served[screen_id] = self._place(self._screens[screen_id])
        return self._served[screen_id]

    def _place(self, screen: ScreenRow) -> str | None:
        loose = self._loose(screen)
        masked = self._masks(screen)
        if loose and not masked and _browsers_agree(screen, self.dataset.pixels_of(screen)):
            return loose
        if self.studio.images_prefix is None:
            return None
        data = self(screen.screen_id)
        name = f"{self.key(screen.screen_id)}.{image_kind(data)[0]}"
        uri = join_uri(normalize_uri(self.studio.images_prefix), name)
        self._copies.create(uri, data)
        return self._address(uri)

    @property
    def _copies(self) -> Storage:
        return storage_for(str(self.studio.images_prefix), self.dataset.input_endpoint)

    def _loose(self, screen: ScreenRow) -> str | None:
        """The address of a picture that is a file or object of its own, where the server may."""
        if screen.shard_kind != ShardKind.FOLDER:
            return None
        return self._address(join_uri(screen.shard, screen.member))

    def _address(self, uri: str) -> str | None:
        """How the task names what lies at `uri`; None where this way of serving does not reach."""
        if self.studio.images != "local":
            return uri if uri.startswith("s3://") else None
        root = PurePosixPath(normalize_uri(str(self.studio.images_root)))
        path = PurePosixPath(uri)
        if not path.is_relative_to(root) or path.parent == root:
            return None
        return LOCAL_ADDRESS + quote(str(path.relative_to(root)))

    def _masks(self, screen: ScreenRow) -> tuple[Box, ...]:
        if self.studio.masks == "none":
            return ()
        if screen.masks is None:
            raise UncoveredError(
                f"{screen.member}: its sidecar does not say what to hide, or not so that it can be "
                "read; `masks: []` says that there is nothing"
            )
        return screen.masks


def covered(image: Image.Image, masks: tuple[Box, ...]) -> Image.Image:
    """A copy of an upright picture with every pixel that a mask touches in one solid colour.

    Args:
        image: RGB, original size.
        masks: original upright pixels.
    """
    result = image.copy()
    draw = ImageDraw.Draw(result)
    for box in masks:
        far = (math.ceil(box.x2) - 1, math.ceil(box.y2) - 1)
        draw.rectangle((math.floor(box.x1), math.floor(box.y1), *far), fill=MASK_COLOUR)
    return result


def _browsers_agree(screen: ScreenRow, data: bytes) -> bool:
    """Whether a browser shows these bytes as we read them.

    Seen in Chromium: EXIF turns a JPEG, but not a WebP, nor a PNG that has it after its pixels; an
    animation plays, while only its first frame was asked about.
    """
    try:
        image_kind(data)
    except UnshowableImageError:
        return False
    turned = screen.orientation != 1 and screen.image_format != "JPEG"
    return not turned and "first_frame_only" not in screen.flags
