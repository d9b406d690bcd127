"""The same requests for every system, as chat completions, and proof that each did all of them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from PIL import Image

from pipeline.bench.throughput import UnequalWorkError
from schemas.ids import Json
from transforms.engines.base import EngineRequest
from transforms.engines.vllm_settings import is_cpu_build

Texts: TypeAlias = Mapping[str, Sequence[str]]
"""Every answer of every request, by the request's id."""

MIN_AGREEMENT = 0.8
"""Of greedy answers that are the same text in two systems. Batches of another make end near ties
otherwise; a lower share means that the systems were not asked the same."""


@dataclass(frozen=True, slots=True)
class Done:
    """One system in one round.

    Attributes:
        seconds: wall time of the round, without a start.
        cpu_seconds: of all processes of the system in that time.
        output_tokens: of all answers.
        start_seconds: of an engine that was started for this round.
    """

    seconds: float
    cpu_seconds: float
    output_tokens: int
    texts: Texts
    start_seconds: float = 0.0


def data_url(image: Image.Image) -> str:
    """The pixels the model sees, as PNG in a URL."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def chat_body(request: EngineRequest, url: str, *, seeded: bool) -> dict[str, Json]:
    """A chat completion that asks what the request asks; `model` is left to the peer.

    Args:
        request: its image is not used.
        url: of the image.
        seeded: whether the request's seed goes with it.
    """
    picture: Json = {
        "type": "image_url",
        "image_url": {"url": url},
        "uuid": request.image_key,  # spares the server to hash the pixels
    }
    text: Json = {"type": "text", "text": request.prompt}
    content: Json = [picture, text] if request.image_first else [text, picture]
    system: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    body: dict[str, Json] = {
        "messages": [*system, {"role": "user", "content": content}],
        **request.sampling.model_dump(mode="json"),
        "max_tokens": request.max_tokens,
        "n": request.n,
        "skip_special_tokens": not request.keep_special_tokens,
        "chat_template_kwargs": json.loads(request.chat_template_kwargs),
    }
    if seeded:
        body["seed"] = request.seed
    if request.json_schema is not None:
        body["structured_outputs"] = {"json": request.json_schema}
    return body


def greedy(request: EngineRequest) -> bool:
    """Whether the same question must get the same answer."""
    return request.sampling.temperature == 0


def write_requests(requests: Sequence[EngineRequest], path: Path) -> None:
    """The requests as lines of JSON: id and body.

    Seeds of sampled requests are left out on a CPU: vLLM 0.32 dies there of a seeded request whose
    prompt is computed in pieces. Our engine works around it in its own process, see
    `vllm_start.keep_seeds_on_cpu`; a server has no such help.
    """
    urls: dict[str, str] = {}
    with path.open("w", encoding="utf-8") as file:
        for request in requests:
            if request.image_key not in urls:
                urls[request.image_key] = data_url(request.image)
            seeded = greedy(request) or not is_cpu_build()
            body = chat_body(request, urls[request.image_key], seeded=seeded)
            print(json.dumps({"id": request.request_id, "body": body}), file=file)


def check_all_differ(requests: Sequence[EngineRequest]) -> None:
    """A repeated request is nearly free where it is found in a cache: no two may be the same.

    Raises:
        UnequalWorkError: if two are.
    """
    said = {(r.image_key, r.system, r.prompt, r.earlier) for r in requests}
    same = len(requests) - len(said)
    if same:
        raise UnequalWorkError(f"{same} of {len(requests)} requests repeat another")


def check_all_answered(system: str, requests: Sequence[EngineRequest], texts: Texts) -> None:
    """Hold a system to its work.

    Raises:
        UnequalWorkError: if a request has no answer, or other than `n`, or none had asked for it.
    """
    wanted = {request.request_id: request.n for request in requests}
    missing, more = wanted.keys() - texts.keys(), texts.keys() - wanted.keys()
    if missing or more:
        raise UnequalWorkError(
            f"{system} left {len(missing)} of {len(wanted)} requests unanswered, and answered "
            f"{len(more)} that nobody asked"
        )
    for key, n in wanted.items():
        if len(texts[key]) != n:
            raise UnequalWorkError(f"{system} gave {len(texts[key])} answers to {key}, not {n}")


def agreement(requests: Sequence[EngineRequest], one: Texts, other: Texts) -> float | None:
    """Share of greedy requests that both answered alike; None where none is greedy."""
    same = [tuple(one[r.request_id]) == tuple(other[r.request_id]) for r in requests if greedy(r)]
    return sum(same) / len(same) if same else None


def check_agreement(
    names: tuple[str, str], requests: Sequence[EngineRequest], one: Texts, other: Texts
) -> float | None:
    """The agreement of two systems.

    Raises:
        UnequalWorkError: if it is under `MIN_AGREEMENT`.
    """
    found = agreement(requests, one, other)
    if found is not None and found < MIN_AGREEMENT:
        raise UnequalWorkError(
            f"{names[0]} and {names[1]} agree in {found:.0%} of the greedy answers only: they were "
            "not asked the same"
        )
    return found
