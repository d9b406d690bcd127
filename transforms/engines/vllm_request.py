"""Requests as vLLM reads them, and the answers to those that it did not answer."""

from __future__ import annotations

from schemas.codes import RejectReason
from schemas.records import Answer
from transforms.engines.base import EngineRequest, Exchange

_LENGTH_PARAMETERS = frozenset({"input_tokens", "input_text"})


def chat_messages(request: EngineRequest) -> list[dict[str, object]]:
    """The conversation: system text if any, earlier turns, then one user turn of image and text."""
    turns: list[dict[str, object]] = []
    if request.system is not None:
        turns.append({"role": "system", "content": request.system})
    for turn in request.earlier:
        turns.append(_shown(turn, image_first=request.image_first))
        turns.append({"role": "assistant", "content": turn.reply})
    turns.append(_shown(request, image_first=request.image_first))
    return turns


def _shown(turn: EngineRequest | Exchange, *, image_first: bool) -> dict[str, object]:
    image = {"type": "image_pil", "image_pil": turn.image, "uuid": turn.image_key}
    text = {"type": "text", "text": turn.prompt}
    return {"role": "user", "content": [image, text] if image_first else [text, image]}


def refused(request: EngineRequest, error: Exception) -> Answer:
    """The answer to a request that could not be rendered."""
    said = " ".join(str(error).split())[:400]
    too_long = getattr(error, "parameter", None) in _LENGTH_PARAMETERS or (
        # The check after the image's tokens are counted names no parameter, only this.
        "maximum model length" in said
    )
    reason = RejectReason.PROMPT_TOO_LONG if too_long else RejectReason.REQUEST_REFUSED
    return Answer(request.request_id, error_reason=reason, error_detail=said)


def timed_out(request: EngineRequest) -> Answer:
    """The answer to a request whose time is over."""
    return Answer(
        request.request_id,
        error_reason=RejectReason.REQUEST_TIMEOUT,
        error_detail=f"no answer within {request.timeout_seconds:g} s "
        "(engine.request_timeout_seconds)",
    )
