"""A review sample as the payloads of Label Studio: task data and one prediction.

Label Studio measures regions in percent of the upright image; it takes nearly anything for granted
and checks nothing, so what is built here is checked by `label_studio.checks` before it is sent.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from label_studio.interface import (
    BOX,
    CANDIDATE,
    CANDIDATE_BOX,
    CLICK,
    ELEMENT,
    IMAGE,
    POINT,
    POINT_WIDTH,
    TEXT,
)
from label_studio.words import WORDS, Variant
from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import Box, FrameKind, Point, SeenImage, Size, clip_point, point_to_frame
from schemas.ids import content_id
from schemas.records import Item
from schemas.review import ReviewSample

MODEL_VERSION = "pantalla"
"""Constant for a project: Label Studio freezes the first one it sees and hides all others.

The real model and revision are in the task's data.
"""

CANDIDATE_GAP = 0.02
"""Candidates nearer than this share of the longer side are the same place to a reviewer."""


class TaskData(TypedDict):
    """`data` of a task: what the interface shows, and what tells where the task comes from.

    Nothing in it tells how sure the model was: an audited sample must look like any other.
    """

    sample_id: str
    screen_id: str
    image: str
    question: str
    instruction: str
    answer: str
    kind: str
    status: str
    priority: float
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
    text: NotRequired[list[str]]


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
    """The model's answer as Label Studio takes it; all regions of a sample in one prediction.

    It has no score: Label Studio would show it beside the task, to lead the reviewer and to tell
    an audited sample from one in doubt.
    """

    result: tuple[Region, ...]
    model_version: str = MODEL_VERSION


def task_data(sample: ReviewSample, image: str, variant: Variant = Variant.NEUTRAL) -> TaskData:
    """The data of a sample's task.

    Args:
        sample: what is reviewed.
        image: address of the picture as the server serves it, for example `/data/upload/...`.
        variant: whose Spanish the reviewer reads.
    """
    return TaskData(
        sample_id=sample.sample_id,
        screen_id=sample.screen_id,
        image=image,
        question=_question(sample, variant),
        instruction=unicodedata.normalize("NFC", sample.instruction),
        answer=_answer(sample),
        kind=sample.kind.value,
        status=sample.status.value,
        priority=round(sample.priority, 6),
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
    for index, item in enumerate(_other_places(sample)):
        regions.append(_candidate_region(sample, f"candidate-{index}", item))
    return PredictionPayload(result=tuple(regions))


def _question(sample: ReviewSample, variant: Variant) -> str:
    """What the reviewer is asked: nothing is marked where the model marked nothing."""
    words = WORDS[variant]
    if sample.kind is QueryKind.LOCALIZATION:
        if sample.items:
            return "¿Están marcados todos los elementos, cada uno con su clase?"
        return f"¿Qué elementos hay? {words['márquelos']}, cada uno con su clase."
    if sample.items:
        return "¿Está bien marcado el elemento que pide la instrucción?"
    if sample.status is SampleStatus.ABSENT:
        return "¿Es cierto que lo que pide la instrucción no está en la pantalla?"
    return f"¿Dónde está el elemento que pide la instrucción? {words['márquelo']}"


def _answer(sample: ReviewSample) -> str:
    """What the model answered, in words: without it an empty screen could mean anything."""
    every = sample.kind is QueryKind.LOCALIZATION
    count = len(sample.items)
    marked = "un elemento marcado" if count == 1 else f"{count} elementos marcados"
    if sample.status is SampleStatus.ABSENT:
        what = "no hay ningún elemento" if every else "no existe en la pantalla"
    elif sample.status is SampleStatus.TRUNCATED and count:
        what = f"se cortó antes de terminar; {marked} en la captura"
    elif sample.status is not SampleStatus.OK or not count:
        what = "ninguna que se pueda usar"
    else:
        what = f"{marked} en la captura" if every else "el lugar marcado en la captura"
    return f"Respuesta del modelo: {what}."


def _item_regions(sample: ReviewSample, index: int, item: Item) -> list[Region]:
    """Box, its text, and click point; among all elements, points would only cover the boxes."""
    regions = []
    box = item.box and _box_value(item.box, sample.size)
    if box:
        alias = item.role.value if item.role else ELEMENT
        box["rectanglelabels"] = [alias]
        regions.append(_region(sample, f"box-{index}", BOX, "rectanglelabels", box))
        if item.label and sample.kind is QueryKind.LOCALIZATION:
            regions.append(_text_region(sample, regions[0], item.label))
    wants_point = sample.kind is QueryKind.GROUNDING or item.box is None
    if item.point is not None and wants_point:
        value = _point_value(item.point, sample.size, CLICK)
        regions.append(_region(sample, f"point-{index}", POINT, "keypointlabels", value))
    return regions


def _candidate_region(sample: ReviewSample, key: str, item: Item) -> Region:
    """Another answer's place: a box where it gave one, else a point; it cannot be moved."""
    box = item.box and _box_value(item.box, sample.size)
    if box:
        box["rectanglelabels"] = [CANDIDATE]
        region = _region(sample, key, CANDIDATE_BOX, "rectanglelabels", box)
    else:
        value = _point_value(_place(item), sample.size, CANDIDATE)
        region = _region(sample, key, CANDIDATE, "keypointlabels", value)
    region["readonly"] = True
    return region


def _text_region(sample: ReviewSample, box: Region, text: str) -> Region:
    """The text of a box: Label Studio ties it to its region by the same id."""
    value = RegionValue(**box["value"])
    value.pop("rectanglelabels")
    value["text"] = [" ".join(unicodedata.normalize("NFC", text).split())]
    region = _region(sample, "", TEXT, "textarea", value)
    region["id"] = box["id"]
    return region


def _box_value(box: Box, size: Size) -> RegionValue | None:
    """A box in percent, cut at the image's edges; None when nothing of it lies on the image."""
    x1, y1 = _percent(_clamped(Point(box.x1, box.y1), size), size)
    x2, y2 = _percent(_clamped(Point(box.x2, box.y2), size), size)
    if x1 >= x2 or y1 >= y2:
        return None
    width, height = min(x2 - x1, 100.0 - x1), min(y2 - y1, 100.0 - y1)
    return RegionValue(x=x1, y=y1, width=width, height=height, rotation=0.0)


def _point_value(point: Point, size: Size, alias: str) -> RegionValue:
    x, y = _percent(_clamped(point, size), size)
    return RegionValue(x=x, y=y, width=POINT_WIDTH, keypointlabels=[alias])


def _region(sample: ReviewSample, key: str, control: str, kind: str, value: RegionValue) -> Region:
    return Region(
        id=content_id([sample.sample_id, key], length=10),
        from_name=control,
        to_name=IMAGE,
        type=kind,
        original_width=sample.size.width,
        original_height=sample.size.height,
        image_rotation=0,
        value=value,
    )


def _clamped(point: Point, size: Size) -> Point:
    return clip_point(point, size, tolerance=float("inf")) or point


def _percent(point: Point, size: Size) -> tuple[float, float]:
    return point_to_frame(point, FrameKind.PERCENT, SeenImage.unchanged(size))


def _other_places(sample: ReviewSample) -> list[Item]:
    """Places of other answers that a reviewer would see as different, each once.

    Only for grounding: the answers of a localization query are not places to choose from.
    """
    if sample.kind is not QueryKind.GROUNDING:
        return []
    gap = CANDIDATE_GAP * max(sample.size.width, sample.size.height)
    seen = [_place(item) for item in sample.items if item.point or item.box]
    others: list[Item] = []
    for item in sample.candidates:
        place = _place(item)
        if not place.inside(sample.size) or _covered(place, sample.items):
            continue
        if all(_distance(place, known) > gap for known in seen):
            seen.append(place)
            others.append(item)
    return others


def _place(item: Item) -> Point:
    """Where an item is; it has a point or a box."""
    if item.point is not None:
        return item.point
    if item.box is None:
        raise ValueError("an item without point and box has no place")
    return item.box.center


def _covered(place: Point, items: tuple[Item, ...]) -> bool:
    return any(item.box is not None and item.box.contains(place) for item in items)


def _distance(first: Point, second: Point) -> float:
    return float(((first.x - second.x) ** 2 + (first.y - second.y) ** 2) ** 0.5)
