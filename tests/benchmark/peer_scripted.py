"""A stand-in for an engine on a large GPU: it answers one text, as fast as such an engine would.

What is compared with it is how well a system feeds its engine: barriers and gaps. Every picture
costs the device `1 / screens_per_second`, a further question on a picture of which another was
asked lately `again` of that; one after the other, as a device does. An answer is there `latency`
after its prompt was computed, meanwhile the device goes on, as continuous batching has it; at most
`seats` requests are inside. What the host does (decoding a picture, rendering a prompt) costs
nothing here, neither in our process nor behind HTTP, which favours the peers.

`python -m tests.benchmark.peer_scripted --port 8000` serves it on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas.caches import CacheCounts
from schemas.records import Answer, Completion
from transforms.engines.base import EngineInfo, EngineRequest

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

TEXT = '[{"bbox_2d":[480,480,520,520],"label":"button"}]'
TOKENS = 30
IMAGE_MEMORY = 64
"""Pictures whose prompts the device still has."""

SPEEDS = {"4b": 12.0, "12b": 4.0}
"""Screens a second of an H100 at most, by the size of the model: round figures, not measured."""


@dataclass
class ServiceModel:
    """When a request that comes now is answered.

    Attributes:
        screens_per_second: that the device can do.
        again: cost of a further question on a picture, as a share of the first.
        latency: seconds from a computed prompt to its whole answer.
        seats: requests inside at once.
    """

    screens_per_second: float
    again: float = 0.15
    latency: float = 0.8
    seats: int = 64
    _device_free: float = 0.0
    _known: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _leaving: list[float] = field(default_factory=list)

    def admit(self, now: float, image_key: str, n: int = 1) -> float:
        """The time at which a request that comes at `now` is answered.

        Args:
            now: seconds of a clock; never less than before.
            image_key: the same for the same picture.
            n: answers wanted; those after the first cost as a further question does.
        """
        while self._leaving and self._leaving[0] <= now:
            heapq.heappop(self._leaving)
        start = now if len(self._leaving) < self.seats else heapq.heappop(self._leaving)
        share = self.again if image_key in self._known else 1.0
        self._known[image_key] = None
        self._known.move_to_end(image_key)
        if len(self._known) > IMAGE_MEMORY:
            self._known.popitem(last=False)
        cost = (share + self.again * (n - 1)) / self.screens_per_second
        self._device_free = max(start, self._device_free) + cost
        done = self._device_free + self.latency
        heapq.heappush(self._leaving, done)
        return done

    def forget(self) -> None:
        """As if it had just started."""
        self._device_free = 0.0
        self._known.clear()
        self._leaving.clear()


class ServiceEngine:
    """The stand-in in this process, for the job and for one raw call."""

    def __init__(self, model: ServiceModel) -> None:
        self.model = model
        self.steps = 0
        self.caches = CacheCounts()
        self._due: list[tuple[float, int, EngineRequest]] = []
        self._count = 0

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("scripted", "1", "scripted", "1", self.model.seats)

    def submit(self, request: EngineRequest) -> None:
        done = self.model.admit(time.monotonic(), request.image_key, request.n)
        self._count += 1
        heapq.heappush(self._due, (done, self._count, request))

    def collect(self) -> list[Answer]:
        """What is due; waits a moment where nothing is."""
        self.steps += 1
        now = time.monotonic()
        if self._due and self._due[0][0] > now:
            time.sleep(min(self._due[0][0] - now, 0.02))
            now = time.monotonic()
        answers = []
        while self._due and self._due[0][0] <= now:
            answers.append(_answer(heapq.heappop(self._due)[2]))
        return answers

    def close(self) -> None:
        """Nothing to end."""


def _answer(request: EngineRequest) -> Answer:
    return Answer(request.request_id, (Completion(TEXT, "stop", TOKENS),) * request.n, 300, 0)


def _completion(n: int) -> dict[str, object]:
    message = {"role": "assistant", "content": TEXT}
    choices = [{"index": i, "message": message, "finish_reason": "stop"} for i in range(n)]
    usage = {
        "prompt_tokens": 300,
        "completion_tokens": TOKENS * n,
        "total_tokens": 300 + TOKENS * n,
    }
    head = {"id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted"}
    return {**head, "choices": choices, "usage": usage}


def _picture(body: dict) -> str:
    """Which picture a body is about."""
    parts = body["messages"][-1]["content"]
    return next(
        part.get("uuid") or part["image_url"]["url"] for part in parts if "image_url" in part
    )


def serve_http(model: ServiceModel, port: int) -> None:
    """Answer chat completions on 127.0.0.1 until ended."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def chat(request: Request) -> Response:
        body = json.loads(await request.body())
        n = body.get("n") or 1
        done = model.admit(time.monotonic(), _picture(body), n)
        await asyncio.sleep(done - time.monotonic())
        return JSONResponse(_completion(n))

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def forget(_: Request) -> Response:
        model.forget()
        return JSONResponse({})

    routes = [
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/models", models),
        *(
            Route(f"/reset_{name}_cache", forget, methods=["POST"])
            for name in ("prefix", "mm", "encoder")
        ),
    ]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--speed", type=float, default=SPEEDS["4b"], help="screens a second")
    given = parser.parse_args()
    serve_http(ServiceModel(given.speed), given.port)


if __name__ == "__main__":
    main()
