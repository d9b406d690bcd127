"""Put the probe's questions to an engine, exactly as the job would put its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from schemas.codes import QueryKind, QueryOrigin
from schemas.errors import ConfigError
from schemas.geometry import FrameKind, SeenImage
from schemas.ids import content_id
from schemas.profile import ModelProfile
from schemas.provenance import Provenance
from schemas.records import Answer, ByteRange, Member, Query, Screen
from transforms.compose import ComposeSettings, Question, compose_samples, grammar_text, to_request
from transforms.engines.base import Engine, EngineRequest
from transforms.parse.raw import raw_numbers
from transforms.probe.scene import Scene, Target
from transforms.probe.verdict import Reply
from transforms.resize import seen_image

_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})

_ANY_FRAME: dict[str, JsonValue] = {"type": "number", "minimum": -1, "maximum": 99_999}
"""Numbers of every frame: pixels, fractions, and the -1 that some families mean absence by."""


@dataclass(frozen=True, slots=True)
class Asking:
    """One question of the probe, ready to be submitted."""

    screen: int
    target: Target
    shown: SeenImage
    answer_format: str
    request: EngineRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """A finished probe: what was answered, and how many tokens each image took."""

    replies: tuple[Reply, ...]
    image_tokens: tuple[tuple[SeenImage, int | None], ...]


def ask_scenes(
    engine: Engine, profile: ModelProfile, scenes: Sequence[Scene], seed: int = 0
) -> Asked:
    """Ask where every target of every scene is; greedily, once each.

    Args:
        engine: owned by the calling thread, with nothing in flight.
        profile: how the model is asked.
        scenes: drawn screens.
        seed: of the requests.

    Raises:
        ConfigError: if the profile cannot ask for a place.
        EngineError: if the engine dies.
    """
    asking = {one.request.request_id: one for one in _askings(profile, scenes, seed)}
    answers = dict(_answers(engine, [one.request for one in asking.values()]))
    return Asked(
        tuple(_reply(one, answers[key]) for key, one in asking.items()),
        tuple((one.shown, answers[key].image_tokens) for key, one in asking.items()),
    )


def loosened(schema: JsonValue) -> JsonValue:
    """A JSON schema whose numbers may be any that a frame could hold.

    The bounds of a grammar (integers of 0 to 1000, say) would force every model into the frame
    that the probe is to find out. Some bounds stay, or a model that is lost writes digits without
    end.
    """
    if isinstance(schema, list):
        return [loosened(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    free = {key: loosened(value) for key, value in schema.items() if key not in _BOUNDS}
    return {**free, **_ANY_FRAME} if schema.get("type") in ("integer", "number") else free


def _askings(profile: ModelProfile, scenes: Sequence[Scene], seed: int) -> Iterator[Asking]:
    if QueryKind.GROUNDING not in profile.tasks:
        raise ConfigError(
            f"profile {profile.name!r} asks no grounding: it cannot be probed for coordinates"
        )
    settings = ComposeSettings(model="probe", revision="probe", k=1, seed=seed)
    for number, scene in enumerate(scenes):
        image, shown = seen_image(scene.image, profile.resize)
        screen = _screen(scene, number, seed)
        frame = profile.frame or FrameKind.NORM_1000  # goes into ids only
        composed = compose_samples(screen, profile, frame, shown, settings)
        for target, question in zip(scene.targets, composed.questions, strict=True):
            request = to_request(question, image, profile)
            free = replace(request, json_schema=_free_grammar(question))
            yield Asking(number, target, shown, question.task.answer_format, free)


def _free_grammar(question: Question) -> str | None:
    task = question.task
    if not task.structured:
        return None
    free = loosened(task.json_schema)
    assert isinstance(free, dict)
    return grammar_text(task.model_copy(update={"json_schema": free}))


def _screen(scene: Scene, number: int, seed: int) -> Screen:
    """The scene as a screen of a shard, so that it is asked by the job's own code."""
    queries = tuple(
        Query(index, QueryKind.GROUNDING, target.instruction, QueryOrigin.SIDECAR)
        for index, target in enumerate(scene.targets)
    )
    size = scene.size
    identity = content_id({"probe": [seed, number, size.width, size.height]}, length=64)
    member = Member(f"probe-{number}.png", ByteRange(f"probe-{number}.png", None, 0))
    return Screen(identity, member, size, "PNG", "RGB", 0, 1, Provenance(), queries)


def _answers(engine: Engine, requests: Sequence[EngineRequest]) -> Iterator[tuple[str, Answer]]:
    """Every request's answer, as they come."""
    waiting, in_flight = deque(requests), 0
    while waiting or in_flight:
        while waiting and in_flight < engine.info.max_in_flight:
            engine.submit(waiting.popleft())
            in_flight += 1
        for answer in engine.collect():
            in_flight -= 1
            yield answer.request_id, answer


def _reply(asked: Asking, answer: Answer) -> Reply:
    if not answer.completions:
        return Reply(asked.screen, asked.target, asked.shown, None, answer.error_detail)
    said = answer.completions[0]
    numbers = raw_numbers(said.text, said.finish_reason, asked.answer_format)
    return Reply(asked.screen, asked.target, asked.shown, numbers, said.text)
