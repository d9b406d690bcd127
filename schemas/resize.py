"""How a model's processor changes the size of an image: one rule of a few kinds, as data."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ResizeRule(_Rule):
    """How the model's processor resizes: sides become multiples of `factor` within pixel bounds.

    The rule is applied by us before the engine sees the image, so that the processor's own resize
    is the identity and the seen size is known exactly. One image token stands for `factor` squared
    pixels. This is the kind a profile means when it names none.
    """

    kind: Literal["smart"] = "smart"
    factor: Annotated[int, Field(ge=1)]
    min_pixels: Annotated[int, Field(ge=1)]
    max_pixels: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _ordered(self) -> ResizeRule:
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels {self.min_pixels} exceeds max_pixels {self.max_pixels}")
        return self


class TileRule(_Rule):
    """How InternVL's and Nemotron-Nano-VL's processors cut an image into square tiles.

    The image is stretched onto the grid of tiles whose ratio of sides is nearest to its own: the
    two axes have different scales, and the inverse must use both.

    Attributes:
        tile: side of a tile in pixels.
        max_tiles: tiles of the grid at most, the thumbnail not counted.
        thumbnail: whether the whole image is shown once more in one tile, when there are several;
            it has no part in the coordinates.
        tile_tokens: image tokens of one tile.
        keeps_aspect: always false; written down because it is so easily assumed.
    """

    kind: Literal["tiles"]
    tile: Annotated[int, Field(ge=1)]
    max_tiles: Annotated[int, Field(ge=1, le=64)]
    thumbnail: bool = True
    tile_tokens: Annotated[int, Field(ge=1)] = 256
    keeps_aspect: Literal[False] = False


class CanvasRule(_Rule):
    """The image is scaled to fit a canvas of fixed size, aspect kept, and the rest is filled.

    Normalised coordinates of such a model are measured on the whole canvas.

    Attributes:
        fill: colour of the rest, as `#rrggbb`.
    """

    kind: Literal["canvas"]
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    anchor: Literal["top_left"] = "top_left"
    fill: Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")] = "#ffffff"


def _kind(value: object) -> str:
    """The tag of a rule: a table without `kind` is a smart resize."""
    found = value.get("kind", "smart") if isinstance(value, dict) else getattr(value, "kind", "")
    return str(found)


AnyResizeRule: TypeAlias = Annotated[
    Annotated[ResizeRule, Tag("smart")]
    | Annotated[TileRule, Tag("tiles")]
    | Annotated[CanvasRule, Tag("canvas")],
    Discriminator(_kind),
]
"""A resize rule of any kind; where a profile has none, the image is shown as it is."""
