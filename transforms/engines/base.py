"""The engine protocol: submit requests, collect answers, one thread owns it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from PIL import Image

from schemas.caches import CacheCounts
from schemas.profile import Sampling
from schemas.records import Answer
from schemas.resize import AnyResizeRule


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier turn of a conversation: what was shown and asked, and what was answered.

    Attributes:
        image: RGB, at the seen size.
        image_key: identity of exactly these pixels.
    """

    image: Image.Image
    image_key: str
    prompt: str
    reply: str


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One request as the engine needs it.

    Attributes:
        request_id: the sample id; unique among requests in flight.
        image: what the model sees, RGB, already at the seen size.
        image_key: identity of exactly these pixels, for the engine's caches.
        prompt: user text.
        system: system text, or None.
        n: completions wanted.
        json_schema: canonical JSON text of the grammar that binds the answer, or None.
        chat_template_kwargs: canonical JSON text of the template's switches.
        image_first: whether the image stands before the text.
        keep_special_tokens: whether special tokens stay in the answer's text.
        timeout_seconds: the engine answers within this time, or gives the request up and answers
            it with an error; None = no limit.
        earlier: turns before this one, oldest first; the job has none, a benchmark of agents does.
    """

    request_id: str
    image: Image.Image
    image_key: str
    prompt: str
    system: str | None
    n: int
    sampling: Sampling
    max_tokens: int
    seed: int
    json_schema: str | None
    chat_template_kwargs: str
    image_first: bool = True
    keep_special_tokens: bool = False
    timeout_seconds: float | None = None
    earlier: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a running engine is: goes into every row.

    Attributes:
        engine: its name, for example `vllm`.
        version: its version.
        model: checkpoint as configured.
        revision: revision, or a content hash of a local checkpoint.
        max_in_flight: requests worth having in the engine at once.
        processor: the resize rule as the parameters of the loaded image processor state it; None
            where they cannot be read.
    """

    engine: str
    version: str
    model: str
    revision: str
    max_in_flight: int
    processor: AnyResizeRule | None = None


class Engine(Protocol):
    """Answers requests in any order. Not thread-safe: one thread calls it.

    A request that fails, or is not answered in its time, comes back from `collect` as an `Answer`
    with an error; `EngineError` is raised only when the engine itself cannot go on.
    """

    @property
    def info(self) -> EngineInfo:
        """What this engine is."""

    @property
    def steps(self) -> int:
        """Signs of life so far: rises whenever the engine has worked, on answers unfinished too."""

    @property
    def caches(self) -> CacheCounts:
        """How often its caches of images helped since it started, as far as it tells."""

    def submit(self, request: EngineRequest) -> None:
        """Hand over one request; never blocks for its answer.

        Raises:
            EngineError: if the engine is dead.
        """

    def collect(self) -> list[Answer]:
        """Work for a moment and return what is finished, possibly nothing.

        Raises:
            EngineError: if the engine is dead.
        """

    def close(self) -> None:
        """Release the device and reap child processes; further calls are errors."""


EngineFactory: TypeAlias = "Callable[[], Engine]"
"""Starts an engine; called once per process, in the thread that will own it. Picklable."""
