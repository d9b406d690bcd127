"""vLLM as a script would use it: everything in one call. What the job is measured against."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from transforms.engines.base import EngineRequest
from transforms.engines.vllm import VllmEngine, sampling_params
from transforms.engines.vllm_request import chat_messages


@dataclass(frozen=True, slots=True)
class WholeAnswers:
    """What one call gave.

    Attributes:
        texts: every completion of every request, in order.
        prompt_tokens: of all requests; `cached_tokens` of these were not computed again.
    """

    texts: tuple[tuple[str, ...], ...]
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


def chat_whole(engine: VllmEngine, requests: Sequence[EngineRequest]) -> WholeAnswers:
    """Answer all requests with one call of `LLM.chat`.

    Args:
        engine: owned by the calling thread, with nothing in flight.
        requests: of one profile: they share the template's switches.

    Raises:
        EngineError: if the engine is dead, closed or another thread's.
    """
    switches = json.loads(requests[0].chat_template_kwargs)
    outputs = engine.llm.chat(
        [chat_messages(request) for request in requests],
        [sampling_params(request) for request in requests],
        use_tqdm=False,
        chat_template_kwargs=switches,
    )
    said = [completion for output in outputs for completion in output.outputs]
    return WholeAnswers(
        tuple(tuple(completion.text for completion in output.outputs) for output in outputs),
        sum(len(output.prompt_token_ids or ()) for output in outputs),
        sum(output.num_cached_tokens or 0 for output in outputs),
        sum(len(completion.token_ids) for completion in said),
    )


def forget_everything(engine: VllmEngine) -> None:
    """Empty the caches of prompts and images, so that the next round finds none of the last.

    Raises:
        EngineError: if the engine is dead, closed or another thread's.
    """
    llm = engine.llm
    llm.reset_prefix_cache()
    llm.reset_mm_cache()
    llm.llm_engine.reset_encoder_cache()
