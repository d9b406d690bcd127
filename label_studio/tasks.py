"""A review sample as the payloads of Label Studio: task data and one prediction.

Label Studio measures regions in percent of the upright image; it takes nearly anything for granted
and checks nothing, so what is built here is checked by `label_studio.checks` before it is sent.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from label_studio.interface import BOX, CANDIDATE, CLICK, ELEMENT, IMAGE, POINT, POINT_WIDTH
from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import Box, FrameKind, Point, SeenImage, Size, clip_point, point_to_frame
from schemas.ids import content_id
from schemas.records import Item
from schemas.review import ReviewSample

MODEL_VERSION = "pantalla"
"""Constant for a project: Label Studio freezes the first one it sees and hides all others.

The real model and revision are in the task's data.
"""

EDGE_TOLERANCE_PX = 1.0
"""A point farther than this outside its image is a defect of ours and is not drawn."""

CANDIDATE_GAP = 0.02
"""Candidates nearer than this share of the longer side are the same place to a reviewer."""


class TaskData(TypedDict):
    """`data` of a task: what the interface shows, and what tells where the task comes from."""

    sample_id: str
    screen_id: str
    image: str
    question: str
    instruction: str
    answer: str
    kind: str
    status: str
    probability: float
    model: str
    app: str
    locale: str


class RegionValue(TypedDict):
    """Geometry of a region in percent of the upright image, and its label aliases."""

    x: float
    y: float
    width: float
    height: NotRequired[float]
    rotation: NotRequired[float]
    rectanglelabels: NotRequired[list[str]]
    keypointlabels: NotRequired[list[str]]


class Region(TypedDict):
    """One region of a prediction."""

    id: str
    from_name: str
    to_name: str
    type: str
    original_width: int
    original_height: int
    image_rotation: int
    readonly: NotRequired[bool]
    value: RegionValue


@dataclass(frozen=True, slots=True)
class PredictionPayload:
    """The model's answer as Label Studio takes it; all regions of a sample in one prediction."""

    result: tuple[Region, ...]
    score: float
    model_version: str = MODEL_VERSION


def task_data(sample: ReviewSample, image: str) -> TaskData:
    """The data of a sample's task.

    Args:
        sample: what is reviewed.
        image: address of the picture as the server serves it, for example `/data/upload/...`.
    """
    return TaskData(
        sample_id=sample.sample_id,
        screen_id=sample.screen_id,
        image=image,
        question=_question(sample.kind),
        instruction=unicodedata.normalize("NFC", sample.instruction),
        answer=_answer(sample),
        kind=sample.kind.value,
        status=sample.status.value,
        probability=sample.probability,
        model=sample.model,
        app=sample.app or "",
        locale=sample.locale or "",
    )


def prediction(sample: ReviewSample) -> PredictionPayload:
    """The sample's answer as one prediction, possibly without regions.

    Region ids depend only on the sample and the position of the item, so a repair draws the same.
    """
    regions: list[Region] = []
    for index, item in enumerate(sample.items):
        regions.extend(_item_regions(sample, index, item))
    for index, place in enumerate(_other_places(sample)):
        region = _point_region(sample, f"candidate-{index}", place, control=CANDIDATE)
        regions.append(Region(**region, readonly=True))
    return PredictionPayload(result=tuple(regions), score=sample.probability)


def _question(kind: QueryKind) -> str:
    if kind is QueryKind.GROUNDING:
        return "¿Está bien marcado el elemento que pide la instrucción?"
    return "¿Están marcados todos los elementos, cada uno con su clase?"


def _answer(sample: ReviewSample) -> str:
    """What the model answered, in words: without it an empty screen could mean anything."""
    if sample.status is SampleStatus.ABSENT:
        return "Respuesta del modelo: no existe en la pantalla."
    if sample.status is not SampleStatus.OK or not sample.items:
        return "Respuesta del modelo: ninguna que se pueda usar."
    if sample.kind is QueryKind.GROUNDING:
        return "Respuesta del modelo: el lugar marcado abajo."
    return f"Respuesta del modelo: {len(sample.items)} elementos marcados abajo."


def _item_regions(sample: ReviewSample, index: int, item: Item) -> list[Region]:
    regions = []
    if item.box is not None:
        alias = item.role.value if item.role else ELEMENT
        region = _box_region(sample, f"box-{index}", item.box, alias)
        regions.extend([region] if region else [])
    if item.point is not None:
        regions.append(_point_region(sample, f"point-{index}", item.point))
    return regions


def _box_region(sample: ReviewSample, key: str, box: Box, alias: str) -> Region | None:
    """A box in percent, cut at the image's edges; None when nothing of it lies on the image."""
    x1, y1 = _percent(_clamped(Point(box.x1, box.y1), sample.size), sample.size)
    x2, y2 = _percent(_clamped(Point(box.x2, box.y2), sample.size), sample.size)
    if x1 >= x2 or y1 >= y2:
        return None
    region = _region(sample, key, BOX, "rectanglelabels")
    region["value"] = RegionValue(
        x=x1,
        y=y1,
        width=min(x2 - x1, 100.0 - x1),
        height=min(y2 - y1, 100.0 - y1),
        rotation=0.0,
        rectanglelabels=[alias],
    )
    return region


def _point_region(sample: ReviewSample, key: str, point: Point, control: str = POINT) -> Region:
    x, y = _percent(_clamped(point, sample.size), sample.size)
    alias = CLICK if control == POINT else CANDIDATE
    region = _region(sample, key, control, "keypointlabels")
    region["value"] = RegionValue(x=x, y=y, width=POINT_WIDTH, keypointlabels=[alias])
    return region


def _region(sample: ReviewSample, key: str, control: str, kind: str) -> Region:
    return Region(
        id=content_id([sample.sample_id, key], length=10),
        from_name=control,
        to_name=IMAGE,
        type=kind,
        original_width=sample.size.width,
        original_height=sample.size.height,
        image_rotation=0,
        value=RegionValue(x=0.0, y=0.0, width=0.0),
    )


def _clamped(point: Point, size: Size) -> Point:
    return clip_point(point, size, tolerance=float("inf")) or point


def _percent(point: Point, size: Size) -> tuple[float, float]:
    return point_to_frame(point, FrameKind.PERCENT, SeenImage.unchanged(size))


def _other_places(sample: ReviewSample) -> list[Point]:
    """Places of other answers that a reviewer would see as different, each once.

    Only for grounding: the answers of a localization query are not places to choose from.
    """
    if sample.kind is not QueryKind.GROUNDING:
        return []
    gap = CANDIDATE_GAP * max(sample.size.width, sample.size.height)
    seen = [place for item in sample.items if (place := _place(item))]
    others: list[Point] = []
    for place in (_place(item) for item in sample.candidates):
        if place is None or not place.inside(sample.size) or _covered(place, sample.items):
            continue
        if all(_distance(place, known) > gap for known in seen + others):
            others.append(place)
    return others


def _place(item: Item) -> Point | None:
    return item.point or (item.box.center if item.box else None)


def _covered(place: Point, items: tuple[Item, ...]) -> bool:
    return any(item.box is not None and item.box.contains(place) for item in items)


def _distance(first: Point, second: Point) -> float:
    return float(((first.x - second.x) ** 2 + (first.y - second.y) ** 2) ** 0.5)
