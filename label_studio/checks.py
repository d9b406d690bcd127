"""What a task and a prediction must be before they are sent.

The server accepts a pixel for a percent, an unknown label and an empty picture with 201, and the
browser later submits them as a reviewer's work. The SDK's own check misses negative values, boxes
that leave the image, empty ones, numbers written as text, several labels and missing sizes.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import asdict
from functools import lru_cache

from label_studio_sdk.label_interface import LabelInterface

from label_studio.interface import build_config, config_controls, data_keys
from label_studio.tasks import PredictionPayload, Region, TaskData

FULL = 100.0
"""The far edge of the image in Label Studio's percent."""

ROUNDING = 1e-9
"""Slack for `x + width`: the largest float error of the conversion was measured at 9e-13."""

_LABEL_KEYS = {"rectanglelabels", "keypointlabels", "text"}


def task_problems(data: TaskData) -> list[str]:
    """What is wrong with a task's data, empty when nothing is.

    Every key that the interface shows must be there, texts must be NFC and ids must not be empty.
    """
    values = dict(data)
    problems = [f"data has no {key!r}" for key in sorted(data_keys()) if not values.get(key)]
    problems += [f"{key!r} is empty" for key in ("sample_id", "screen_id") if not values.get(key)]
    problems += [
        f"{key!r} is not NFC or not valid text"
        for key, value in values.items()
        if isinstance(value, str) and not _clean_text(value)
    ]
    if str(values.get("image")).startswith("data:"):
        problems.append("'image' holds the picture itself: lists of such tasks take minutes")
    problems += _fraction_problems("priority", values.get("priority"))
    return problems


def prediction_problems(payload: PredictionPayload) -> list[str]:
    """What is wrong with a prediction, by our own rules and then by the SDK's."""
    problems = [] if payload.model_version else ["model_version is empty"]
    texts = [region for region in payload.result if region.get("type") == "textarea"]
    ids = [region.get("id") for region in payload.result if region not in texts]
    if len(set(ids)) != len(ids):
        problems.append("region ids are not unique")
    problems += [
        f"the text of {text.get('id')!r} belongs to no region"
        for text in texts
        if text.get("id") not in ids
    ]
    for index, region in enumerate(payload.result):
        problems += [f"region {index}: {problem}" for problem in region_problems(region)]
    return problems or _sdk_problems(payload)


def region_problems(region: Region) -> list[str]:
    """What is wrong with one region: its names, its label, its size and its place."""
    problems = []
    if not region.get("id"):
        problems.append("no id")
    for side in ("original_width", "original_height"):
        size = region.get(side)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            problems.append(f"{side} is {size!r}")
    return problems + _name_problems(region) + _value_problems(region)


def _name_problems(region: Region) -> list[str]:
    name = region.get("from_name")
    control = config_controls().get(str(name))
    if control is None:
        return [f"the interface has no control {name!r}"]
    problems = []
    if region.get("to_name") != control.target:
        problems.append(f"to_name is {region.get('to_name')!r}, not {control.target!r}")
    if region.get("type") != control.kind:
        problems.append(f"type is {region.get('type')!r}, not {control.kind!r}")
    if control.kind == "textarea":
        return problems + _text_problems(region)
    labels = dict(region.get("value", {})).get(control.kind)
    if not isinstance(labels, list) or len(labels) != 1:
        problems.append(f"needs exactly one label under {control.kind!r}, has {labels!r}")
    elif labels[0] not in control.aliases:
        problems.append(f"the interface has no label {labels[0]!r} in {name!r}")
    return problems


def _text_problems(region: Region) -> list[str]:
    texts = dict(region.get("value", {})).get("text")
    clean = isinstance(texts, list) and all(
        isinstance(text, str) and text.strip() and _clean_text(text) for text in texts
    )
    return [] if clean and texts else ["text is not a list of NFC texts"]


def _value_problems(region: Region) -> list[str]:
    value = dict(region.get("value", {}))
    sides = ["x", "y", "width"] + ([] if region.get("type") == "keypointlabels" else ["height"])
    numbers = {side: value.get(side) for side in sides}
    problems = [f"{side} is {number!r}" for side, number in numbers.items() if not _percent(number)]
    unknown = set(value) - {"x", "y", "width", "height", "rotation"} - _LABEL_KEYS
    problems += [f"unknown value {key!r}" for key in sorted(unknown)]
    if problems:
        return problems
    problems += [f"{side} is 0" for side in sides[2:] if not numbers[side]]
    return problems + _reach_problems(numbers)


def _reach_problems(numbers: dict[str, object]) -> list[str]:
    if "height" not in numbers:
        return []
    reach = {
        "x + width": _number(numbers["x"]) + _number(numbers["width"]),
        "y + height": _number(numbers["y"]) + _number(numbers["height"]),
    }
    return [f"{what} is {end}" for what, end in reach.items() if end > FULL + ROUNDING]


def _fraction_problems(name: str, value: object) -> list[str]:
    inside = _finite(value) and 0 <= _number(value) <= 1
    return [] if inside else [f"{name} is {value!r}, not in 0..1"]


def _percent(value: object) -> bool:
    return _finite(value) and 0 <= _number(value) <= FULL


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _clean_text(text: str) -> bool:
    """NFC and without lone surrogates, which no JSON reader has to accept."""
    encodable = not any(0xD800 <= ord(letter) <= 0xDFFF for letter in text)
    return encodable and unicodedata.is_normalized("NFC", text)


@lru_cache(maxsize=1)
def _label_interface() -> LabelInterface:
    return LabelInterface(build_config())


def _sdk_problems(payload: PredictionPayload) -> list[str]:
    """The SDK's own check: ours may not be weaker than what it knows."""
    prediction = asdict(payload)
    prediction["result"] = list(prediction["result"])
    return [
        str(problem)
        for problem in _label_interface().validate_prediction(prediction, return_errors=True)
    ]
