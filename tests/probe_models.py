"""Simulated models: each sees the probe's screens and answers in a convention of its own."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from schemas.geometry import FrameKind, Point, SeenImage, point_to_frame
from schemas.profile import ModelProfile, TaskSpec
from schemas.records import Answer, Completion
from schemas.resize import AnyResizeRule
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency
from transforms.probe.scene import Extent, Scene, Target, spanish_scenes
from transforms.probe.start import SEED
from transforms.resize import image_tokens, seen_chain

_QUOTED = re.compile("«([^»]+)»")


@dataclass(frozen=True)
class Convention:
    """How a simulated model says where something is.

    Attributes:
        frame: of its numbers.
        rule: what its processor does to the shown image before it measures.
        order: `xy` or `yx`; `boxes`: `none` for points, `xyxy` or `xywh`.
        noise: spread of its aim, as a share of each side.
        nonsense: share of its answers that are about nothing.
        shift: how far to the right of what it means it points, as a share of the width.
    """

    frame: FrameKind = FrameKind.NORM_1000
    rule: AnyResizeRule | None = None
    order: str = "xy"
    boxes: str = "none"
    noise: float = 0.004
    nonsense: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True)
class Model:
    """Answers the questions of a probe about `scenes`, shown as `profile` shows them."""

    scenes: Sequence[Scene]
    profile: ModelProfile
    convention: Convention
    seed: int = 1

    def __call__(self, request: EngineRequest) -> Answer:
        label = _QUOTED.search(request.prompt)
        assert label is not None
        scene, target = self._find(label.group(1))
        chance = random.Random(f"{self.seed} {label.group(1)}")
        shown = seen_chain(SeenImage.unchanged(scene.size), self.profile.resize)
        text = self._say(scene, target, shown, chance)
        return Answer(
            request.request_id,
            tuple(Completion(text, "stop", 9) for _ in range(request.n)),
            prompt_tokens=100,
            image_tokens=image_tokens(shown.seen, self.profile.resize),
        )

    def _find(self, label: str) -> tuple[Scene, Target]:
        return next((s, t) for s in self.scenes for t in s.targets if t.label == label)

    def _say(self, scene: Scene, target: Target, shown: SeenImage, chance: random.Random) -> str:
        rule = self.convention
        width, height = scene.size.width, scene.size.height
        if chance.random() < rule.nonsense:
            if chance.random() < 0.3:
                return "No sé dónde está."
            middle = Point(chance.random() * width, chance.random() * height)
        else:
            middle = Point(
                target.box.center.x + (chance.gauss(0, rule.noise) + rule.shift) * width,
                target.box.center.y + chance.gauss(0, rule.noise) * height,
            )
        seen = seen_chain(shown, rule.rule)

        def numbers(dx: float, dy: float) -> list[float]:
            x, y = point_to_frame(Point(middle.x + dx, middle.y + dy), rule.frame, seen)
            return self._rounded([x, y])

        if rule.boxes == "none":
            return self._point(self._ordered(numbers(0, 0)))
        half_x = (target.box.x2 - target.box.x1) / 2
        half_y = (target.box.y2 - target.box.y1) / 2
        first, second = numbers(-half_x, -half_y), numbers(half_x, half_y)
        if rule.boxes == "xywh":
            second = [second[0] - first[0], second[1] - first[1]]
        box = [*self._ordered(first), *self._ordered(second)]
        return json.dumps([{"bbox_2d": box, "label": target.label}])

    def _rounded(self, numbers: list[float]) -> list[float]:
        digits = 4 if self.convention.frame is FrameKind.NORM_1 else 0
        return [round(number, digits) if digits else round(number) for number in numbers]

    def _ordered(self, numbers: list[float]) -> list[float]:
        return numbers if self.convention.order == "xy" else numbers[::-1]

    def _point(self, numbers: list[float]) -> str:
        return json.dumps({"x": numbers[0], "y": numbers[1]})


def start_scenes() -> tuple[Scene, ...]:
    """What most profiles are asked about at every start of an engine."""
    return spanish_scenes(Extent.START, SEED)


def same_corner(request: EngineRequest) -> Answer:
    """A model that cannot ground: whatever is asked, it points near the same place."""
    chance = random.Random(request.request_id)
    text = json.dumps({"x": chance.randint(480, 520), "y": chance.randint(480, 520)})
    return Answer(request.request_id, (Completion(text, "stop", 9),))


def anywhere(request: EngineRequest) -> Answer:
    """A model that cannot ground: it points anywhere on its 0-1000 scale."""
    chance = random.Random(request.request_id)
    text = json.dumps({"x": chance.randint(0, 1000), "y": chance.randint(0, 1000)})
    return Answer(request.request_id, (Completion(text, "stop", 9),))


def chatty(request: EngineRequest) -> Answer:
    """A model that talks instead of pointing."""
    return Answer(request.request_id, (Completion("Claro, es el botón azul.", "stop", 9),))


def engine(
    script: Callable[[EngineRequest], Answer], processor: AnyResizeRule | None = None
) -> ScriptedEngine:
    return ScriptedEngine(script, ScriptedLatency(hold=1, per_collect=5), 8, processor)


def engine_factory(
    script: Callable[[EngineRequest], Answer], processor: AnyResizeRule | None = None
) -> Callable[[], ScriptedEngine]:
    """A picklable way to start one, for jobs."""
    return partial(engine, script, processor)


def with_task(profile: ModelProfile, **changes: object) -> ModelProfile:
    """`profile` with another grounding task."""
    tasks: dict[object, TaskSpec] = dict(profile.tasks)
    kind = next(iter(k for k in tasks if k == "grounding"))
    return profile.model_copy(
        update={"tasks": {kind: tasks[kind].model_copy(update=changes)}, "probe_screens": "spanish"}
    )


__all__ = [
    "Convention", "Model", "anywhere", "chatty", "engine", "engine_factory", "replace",
    "same_corner", "start_scenes", "with_task",
]  # fmt: skip
