"""Decoded screens to requests: resize as the model's processor would, compose every query."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from schemas.codes import RejectReason, Stage
from schemas.copies import CopyOf, query_key
from schemas.errors import MemberRejected
from schemas.geometry import FrameKind
from schemas.profile import ModelProfile
from schemas.records import Reject, Sample
from transforms.compose import ComposeSettings, compose_samples, to_request
from transforms.pixel_limits import decoded_weight
from transforms.prefetch import parallel_flat_map
from transforms.resize import seen_image
from transforms.work import Ask, Asked, ComposeEvent, Decoded, DecodeEvent, Refused

COMPOSE_AHEAD = 4
"""Screens resized ahead of their turn; each holds its pixels twice for a moment."""

STRONG_DOWNSCALE = 4
"""A page shrunk more than this is flagged: 14 px letters are under 4 px high for the model."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How screens are put to the model.

    Attributes:
        frame: the convention of the model's coordinates.
    """

    profile: ModelProfile
    frame: FrameKind
    compose: ComposeSettings


def compose(
    events: Iterable[DecodeEvent],
    settings: AskSettings,
    executor: Executor,
    most: int | None = None,
) -> Iterator[ComposeEvent]:
    """The requests of every screen, in order; resizing runs on `executor`.

    What an earlier copy of the same picture asks becomes a reject: it has its row there, and a
    reviewer must never get it twice. Which copy is the earlier one was decided when planning.

    Args:
        events: decoded screens.
        settings: how they are put to the model.
        executor: resizes up to `COMPOSE_AHEAD` ahead of their turn.
        most: bytes of pixels that these may take.
    """
    work = partial(_compose, settings)
    composed = parallel_flat_map(executor, work, events, COMPOSE_AHEAD, decoded_weight, most)
    for event in composed:
        if isinstance(event, Asked):
            yield from _drop_repeated(event)
        else:
            yield event


def _compose(settings: AskSettings, event: DecodeEvent) -> list[ComposeEvent]:
    if not isinstance(event, Decoded):
        return [event]
    screen = event.screen
    try:
        image, seen = seen_image(event.image, settings.profile.resize)
    except MemberRejected as error:
        reject = Reject(
            Stage.COMPOSE, error.reason, error.detail, screen.member.name, screen.screen_id
        )
        return [Refused(event.unit, reject, is_member=True)]
    if min(seen.scale_x, seen.scale_y) < 1 / STRONG_DOWNSCALE:
        flags = tuple(sorted({*screen.flags, f"downscaled_over_{STRONG_DOWNSCALE}"}))
        screen = dataclasses.replace(screen, flags=flags)
    composed = compose_samples(screen, settings.profile, settings.frame, seen, settings.compose)
    refused = [Refused(event.unit, reject, is_query=True) for reject in composed.rejects]
    asks = tuple(
        Ask(question, to_request(question, image, settings.profile))
        for question in composed.questions
    )
    return [*refused, Asked(event.unit, screen, asks)]


def _drop_repeated(event: Asked) -> Iterator[ComposeEvent]:
    copy = event.screen.member.copy
    if copy is None or copy.screen_id != event.screen.screen_id:
        yield event
        return
    fresh: list[Ask] = []
    for ask in event.asks:
        query = ask.question.sample.query
        if query_key(query.kind, query.instruction) in copy.repeated:
            yield _repeated(event, ask.question.sample, copy)
        else:
            fresh.append(ask)
    yield dataclasses.replace(event, asks=tuple(fresh))


def _repeated(event: Asked, sample: Sample, copy: CopyOf) -> Refused:
    reject = Reject(
        stage=Stage.COMPOSE,
        reason=RejectReason.SAMPLE_DUPLICATE,
        detail=f"an earlier copy of the same picture is asked the same; the first is {copy.first}",
        member=event.screen.member.name,
        screen_id=event.screen.screen_id,
        sample_id=sample.sample_id,
        instruction=sample.query.instruction,
    )
    return Refused(event.unit, reject, is_query=True)
