"""Questions, answers, megapixels and tokens of a job, from a look at some of its screens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.config import JobConfig
from pipeline.dataset import Dataset
from pipeline.estimate_looks import Look, Looks, look_at
from schemas.codes import QueryKind
from schemas.profile import ModelProfile
from schemas.records import Unit
from transforms.profiles.load import load_profile

CHARS_PER_TOKEN = 4
"""Characters of prompt text that one token stands for: a rule of thumb, for the text alone."""

_EARLIER_PARTS = 20


@dataclass(frozen=True, slots=True)
class Work:
    """What a job has to do; the meanings are those of `Estimate`.

    Attributes:
        asked_left: screens that are left and will be no rejects.
    """

    looked_at: int
    megapixels: float | None
    queries: int
    answers: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_out_limit: int
    refused: dict[str, int]
    asked_left: float

    def seconds(self, tokens_per_second: float | None) -> float | None:
        """How long the engine takes at a rate of tokens in and out; None = it cannot be told."""
        if tokens_per_second is None or self.tokens_in is None:
            return None
        out = self.tokens_out_limit if self.tokens_out is None else self.tokens_out
        return (self.tokens_in + out) / tokens_per_second


def expected_work(
    config: JobConfig, units: Sequence[Unit], done: frozenset[str], dataset: Dataset | None
) -> Work:
    """Look at screens of the plan and say what all of them, and those that are left, take.

    Args:
        config: the job.
        units: of the whole plan.
        done: ids of those that are committed.
        dataset: an earlier run into the same place: its answers say how long an answer is.

    Raises:
        ConfigError: if the profile or the queries file is wrong.
        StorageError: if a store does not answer.
    """
    looks = look_at(config, units, done)
    screens = sum(len(unit.members) for unit in units)
    screens_left = sum(len(unit.members) for unit in units if unit.unit_id not in done)
    profile = load_profile(config.model.profile)
    share = _Share(profile, config.sampling.k)
    pixels = looks.mean(lambda look: look.megapixels)
    answers = looks.left.mean(share.answers) or 0.0
    tokens_in = looks.left.mean(share.tokens_in)
    length = None if dataset is None else _earlier_length(dataset)
    return Work(
        looked_at=len(looks.seen),
        megapixels=None if pixels is None else pixels * screens,
        queries=round((looks.mean(lambda look: look.queries) or 0.0) * screens),
        answers=round(answers * screens_left),
        tokens_in=None if tokens_in is None else round(tokens_in * screens_left),
        tokens_out=None if length is None else round(answers * length * screens_left),
        tokens_out_limit=round((looks.left.mean(share.tokens_out_limit) or 0.0) * screens_left),
        refused=_refused(looks, screens),
        asked_left=(looks.left.mean(lambda _: 1.0) or 0.0) * screens_left,
    )


def _refused(looks: Looks, screens: int) -> dict[str, int]:
    """Screens of the whole plan that will be rejects, by reason."""
    found = sorted(looks.refusals().items())
    return {reason.value: round(count * screens / len(looks.seen)) for reason, count in found}


@dataclass(frozen=True, slots=True)
class _Share:
    """What one screen adds."""

    profile: ModelProfile
    k: int

    def answers(self, look: Look) -> int:
        return look.grounding * self.k + look.localization

    def tokens_in(self, look: Look) -> float | None:
        if look.image_tokens is None:
            return None
        return sum(
            count * (look.image_tokens + _prompt_tokens(self.profile, kind))
            for kind, count in _by_kind(look)
        )

    def tokens_out_limit(self, look: Look) -> int:
        times = {QueryKind.GROUNDING: self.k, QueryKind.LOCALIZATION: 1}
        return sum(
            count * times[kind] * self.profile.tasks[kind].max_tokens
            for kind, count in _by_kind(look)
            if kind in self.profile.tasks
        )


def _by_kind(look: Look) -> Iterator[tuple[QueryKind, int]]:
    yield QueryKind.GROUNDING, look.grounding
    yield QueryKind.LOCALIZATION, look.localization


def _prompt_tokens(profile: ModelProfile, kind: QueryKind) -> float:
    task = profile.tasks.get(kind)
    return 0.0 if task is None else len(task.prompt + (task.system or "")) / CHARS_PER_TOKEN


def _earlier_length(dataset: Dataset) -> float | None:
    """Mean tokens of an answer in the first parts of what is committed."""
    tokens = answers = 0
    parts = dataset.parts("annotations", ["element_index", "output_tokens", "sampling"])
    for _, part in itertools.islice(parts, _EARLIER_PARTS):
        for row in part.to_pylist():
            if row["element_index"] == 0:
                tokens += row["output_tokens"]
                answers += row["sampling"]["k"]
    return tokens / answers if answers else None
