"""Turn the queries of a screen into samples: prompt text, sampling settings and a stable id.

A sample id is a hash of everything that shapes an answer, and of nothing else: asking the same
question in the same way gives the same id on every machine, and any difference gives another.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from PIL import Image

from schemas.codes import QueryKind, RejectReason, Stage
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.ids import Json, canonical_json, content_id
from schemas.profile import ModelProfile, Sampling, TaskSpec
from schemas.records import Query, Reject, Sample, Screen
from transforms.engines.base import EngineRequest

_PLACEHOLDER = re.compile(r"\{(target|schema|width|height)\}")


@dataclass(frozen=True, slots=True)
class ComposeSettings:
    """What the job adds to the profile.

    Attributes:
        model: checkpoint as it goes into rows; `revision` its revision or content hash.
        k: answers per grounding query; 1 asks once, greedily.
        temperature: of the k answers, over the profile's; has no effect when k is 1.
        seed: part of every sample id, and through it of every request's seed.
    """

    model: str
    revision: str
    k: int = 5
    temperature: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of which screen.

    Attributes:
        prompt: the whole user text, as `prompt_text` makes it of the instruction.
        shown: size of the image that the model sees, pixels.
    """

    screen_id: str
    kind: QueryKind
    instruction: str
    prompt: str
    shown: Size


@dataclass(frozen=True, slots=True)
class Question:
    """A sample with what is needed to ask it and to read its answers.

    Attributes:
        n: completions wanted.
        seed: of the request, in 0..2^31-1, fixed by the sample id.
    """

    sample: Sample
    task: TaskSpec
    sampling: Sampling
    n: int
    seed: int


@dataclass(frozen=True, slots=True)
class Composed:
    """Every query of one screen, either as a question or as a reject."""

    questions: tuple[Question, ...]
    rejects: tuple[Reject, ...]


def compose_samples(
    screen: Screen,
    profile: ModelProfile,
    frame: FrameKind,
    seen: SeenImage,
    settings: ComposeSettings,
) -> Composed:
    """Questions for all queries of `screen`, in their order.

    A query of a kind that the profile cannot ask becomes a `query_invalid` reject; a query that
    repeats an earlier one of the screen becomes a `sample_duplicate` reject.

    Args:
        screen: its queries are asked; its id goes into theirs.
        profile: how the model is asked.
        settings: what the job adds.
        frame: the resolved convention of the answers, see `profiles.load.resolve_frame`.
        seen: how the image the model will see was made.
    """
    questions: dict[str, Question] = {}
    rejects: list[Reject] = []
    for query in screen.queries:
        task = profile.tasks.get(query.kind)
        if task is None:
            rejects.append(_unsupported(screen, query, profile))
            continue
        question = _question(screen, query, profile, task, frame, seen, settings)
        if question.sample.sample_id in questions:
            rejects.append(_duplicate(screen, query, question))
            continue
        questions[question.sample.sample_id] = question
    return Composed(tuple(questions.values()), tuple(rejects))


def _question(
    screen: Screen,
    query: Query,
    profile: ModelProfile,
    task: TaskSpec,
    frame: FrameKind,
    seen: SeenImage,
    settings: ComposeSettings,
) -> Question:
    sampling, n = request_sampling(query.kind, profile, settings)
    prompt = prompt_text(task, query.instruction, seen.seen)
    asked = Asked(screen.screen_id, query.kind, query.instruction, prompt, seen.seen)
    sample_id = id_of_sample(asked, profile, frame, settings)
    sample = Sample(sample_id, screen.screen_id, query, prompt, task.prompt_version, seen)
    return Question(sample, task, sampling, n, request_seed(sample_id))


def id_of_sample(
    asked: Asked, profile: ModelProfile, frame: FrameKind, settings: ComposeSettings
) -> str:
    """The id of a sample: a hash of everything that shapes its answer.

    Args:
        asked: what is asked of which screen.
        profile: how the model is asked; it has a task of this kind.
        frame: the resolved convention of the answers.
        settings: what the job adds.
    """
    task = profile.tasks[asked.kind]
    sampling, n = request_sampling(asked.kind, profile, settings)
    return content_id(
        {
            "screen_id": asked.screen_id,
            "kind": asked.kind,
            "instruction": asked.instruction,
            "prompt_version": task.prompt_version,
            "prompt": asked.prompt,
            "system": system_text(task, asked.shown),
            "answer_format": task.answer_format,
            "schema": grammar_text(task),
            "chat_template_kwargs": dict(profile.chat_template_kwargs),
            "profile": profile.name,
            "model": settings.model,
            "revision": settings.revision,
            "sampling": _sampling_ingredients(sampling, n, task, settings),
            "resize": profile.resize.model_dump() if profile.resize else None,
            "frame": frame,
            **_form(task),
        }
    )


def _sampling_ingredients(
    sampling: Sampling, n: int, task: TaskSpec, settings: ComposeSettings
) -> Json:
    return {
        **sampling.model_dump(),
        "k": n,
        "max_tokens": task.max_tokens,
        "seed": settings.seed,
    }


def request_sampling(
    kind: QueryKind, profile: ModelProfile, settings: ComposeSettings
) -> tuple[Sampling, int]:
    """Sampling settings and the number of answers for one kind of query.

    Localization is asked once, greedily: k whole lists cannot be voted on element by element yet.
    """
    if kind is not QueryKind.GROUNDING or settings.k == 1:
        return profile.greedy, 1
    if settings.temperature is None:
        return profile.vote, settings.k
    changed = profile.vote.model_copy(update={"temperature": float(settings.temperature)})
    return changed, settings.k


def request_seed(sample_id: str) -> int:
    """The seed of a request, 0..2^31-1: the first 31 bits of the sample id."""
    return int(sample_id[:8], 16) >> 1


def _form(task: TaskSpec) -> dict[str, Json]:
    """What is unusual about the request's form; nothing for most families."""
    form: dict[str, Json] = {}
    if not task.image_first:
        form["image_first"] = False
    if task.keep_special_tokens:
        form["keep_special_tokens"] = True
    return form


def prompt_text(task: TaskSpec, instruction: str, shown: Size | None = None) -> str:
    """The user text.

    Placeholders are filled in one pass, so braces in an instruction stay what they are.

    Args:
        task: its `prompt` is filled.
        instruction: takes the place of `{target}`.
        shown: size of the shown image, for `{width}` and `{height}`; None leaves these as they are.
    """
    return _fill(task.prompt, {"target": instruction, "schema": repr(task.json_schema)}, shown)


def system_text(task: TaskSpec, shown: Size) -> str | None:
    """The system text, which may name the size of the shown image."""
    return None if task.system is None else _fill(task.system, {}, shown)


def _fill(text: str, values: dict[str, str], shown: Size | None) -> str:
    if shown is not None:
        values = {**values, "width": str(shown.width), "height": str(shown.height)}
    return _PLACEHOLDER.sub(lambda found: values.get(found.group(1), found.group()), text)


def grammar_text(task: TaskSpec) -> str | None:
    """JSON text of the enforced schema; keys keep their order, in which the answer is written."""
    if not task.structured:
        return None
    return json.dumps(task.json_schema, separators=(",", ":"), ensure_ascii=False)


def _unsupported(screen: Screen, query: Query, profile: ModelProfile) -> Reject:
    known = ", ".join(sorted(profile.tasks))
    return Reject(
        stage=Stage.COMPOSE,
        reason=RejectReason.QUERY_INVALID,
        detail=f"profile {profile.name!r} cannot ask {query.kind} queries, only: {known}",
        member=screen.member.name,
        screen_id=screen.screen_id,
        instruction=query.instruction,
    )


def _duplicate(screen: Screen, query: Query, question: Question) -> Reject:
    return Reject(
        stage=Stage.COMPOSE,
        reason=RejectReason.SAMPLE_DUPLICATE,
        detail=f"query {query.index} repeats an earlier query of the same screen",
        member=screen.member.name,
        screen_id=screen.screen_id,
        sample_id=question.sample.sample_id,
        instruction=query.instruction,
    )


def to_request(question: Question, image: Image.Image, profile: ModelProfile) -> EngineRequest:
    """The engine's form of a question.

    Args:
        question: what to ask.
        image: what the model sees, of the seen size.
        profile: the one the question was composed with.
    """
    task, sample = question.task, question.sample
    seen = sample.seen
    shape: Json = [seen.seen.width, seen.seen.height, seen.offset_x, seen.offset_y]
    return EngineRequest(
        request_id=sample.sample_id,
        image=image,
        image_key=content_id({"screen_id": sample.screen_id, "shape": shape}),
        prompt=sample.prompt,
        system=system_text(task, seen.seen),
        n=question.n,
        sampling=question.sampling,
        max_tokens=task.max_tokens,
        seed=question.seed,
        json_schema=grammar_text(task),
        chat_template_kwargs=canonical_json(dict(profile.chat_template_kwargs)),
        image_first=task.image_first,
        keep_special_tokens=task.keep_special_tokens,
    )
