"""Requests that are one and the same to the model are asked once, and answered to all.

When that can be, told by what makes a request:

- The same bytes asked the same twice have one sample id, and are never asked twice: inside a screen
  `compose_samples`, between copies the plan rejects the later one (`sample_duplicate`).
- The same pixels in files of other bytes (saved anew, other metadata) are other screens, so their
  samples have other ids and, by these, other seeds: drawn answers are not the same, and each is
  asked. Greedy answers draw nothing: `sampling.k = 1`, and every list of elements. Only these can
  be the same request twice, and only for them are pixels hashed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import replace

from PIL import Image

from schemas.records import Answer
from transforms.engines.base import EngineRequest

REMEMBERED = 1024
"""Answers kept for requests that come later: a few hundred bytes each, some KiB for a long list."""


def is_greedy(request: EngineRequest) -> bool:
    """Whether its answer is drawn from nothing, so that its seed does not matter."""
    return request.sampling.temperature == 0


def pixel_key(image: Image.Image) -> str:
    """A hash of an image's mode, size and pixels: 3.4 ms of a processor for RGB of 1280x800.

    Pillow's export to Arrow would spare the copy, and now and then ends the process in threads.
    """
    digest = hashlib.sha256(f"{image.mode} {image.size}".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def model_key(request: EngineRequest) -> Hashable:
    """Everything that shapes the answer, and nothing else."""
    return (
        request.image_key,
        request.prompt,
        request.system,
        request.n,
        request.sampling.model_dump_json(),
        request.max_tokens,
        None if is_greedy(request) else request.seed,
        request.json_schema,
        request.chat_template_kwargs,
        request.image_first,
        request.keep_special_tokens,
        tuple((turn.image_key, turn.prompt, turn.reply) for turn in request.earlier),
    )


class SameRequests:
    """What is in the engine, who waits for the same answer, and the latest answers."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._most = remembered
        self._key_of: dict[str, Hashable] = {}
        self._followers: dict[Hashable, list[str]] = {}
        self._latest: OrderedDict[Hashable, Answer] = OrderedDict()

    def known(self, request: EngineRequest) -> Answer | None:
        """The answer to a request, where the same was answered not long ago."""
        key = model_key(request)
        if key not in self._latest:
            return None
        self._latest.move_to_end(key)
        return _shared(self._latest[key], request.request_id)

    def joins(self, request: EngineRequest) -> bool:
        """Whether the same request is in the engine: this one then waits for its answer."""
        followers = self._followers.get(model_key(request))
        if followers is None:
            return False
        followers.append(request.request_id)
        return True

    def lead(self, request: EngineRequest) -> None:
        """A request goes into the engine."""
        key = model_key(request)
        self._key_of[request.request_id] = key
        self._followers[key] = []

    def answers(self, answer: Answer) -> Iterator[Answer]:
        """The answer of the engine, and the same to whoever waited for it.

        An error is shared too: what an engine dies of, or cannot read, it would die of again.
        """
        yield answer
        key = self._key_of.pop(answer.request_id)
        for follower in self._followers.pop(key):
            yield _shared(answer, follower)
        if answer.error_reason is None:
            self._latest[key] = answer
            if len(self._latest) > self._most:
                self._latest.popitem(last=False)


def _shared(answer: Answer, request_id: str) -> Answer:
    """The same answer to another request; none of its prompt was computed."""
    return replace(
        answer, request_id=request_id, cached_tokens=answer.prompt_tokens, is_shared=True
    )
