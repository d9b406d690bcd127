"""Requests as vLLM reads them, and the answers to those that it did not answer."""

from __future__ import annotations

from schemas.codes import RejectReason
from schemas.records import Answer
from transforms.engines.base import EngineRequest

_LENGTH_PARAMETERS = frozenset({"input_tokens", "input_text"})


def chat_messages(request: EngineRequest) -> list[dict[str, object]]:
    """The conversation: system text if any, then one user turn of image and text."""
    image = {"type": "image_pil", "image_pil": request.image, "uuid": request.image_key}
    text = {"type": "text", "text": request.prompt}
    content = [image, text] if request.image_first else [text, image]
    turns: list[dict[str, object]] = [{"role": "user", "content": content}]
    if request.system is not None:
        turns.insert(0, {"role": "system", "content": request.system})
    return turns


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
