"""Whether an engine that was just started works at all."""

from __future__ import annotations

import time
from dataclasses import replace

from PIL import Image

from transforms.engines.base import Engine, EngineRequest

WITNESS = "harmless-request"

_BREATH = 0.02


def is_alive(engine: Engine, like: EngineRequest, seconds: float) -> bool:
    """Whether the engine answers a small blank picture; a refusal is an answer.

    Args:
        engine: owned by the calling thread, with nothing in it.
        like: a request whose sampling and grammar are taken.
        seconds: longest wait for the answer.

    Raises:
        EngineError: if it dies of it.
    """
    harmless = replace(
        like,
        request_id=WITNESS,
        image=Image.new("RGB", (224, 224), "white"),  # whole patches of 14, 16, 28 and 32 px
        image_key=WITNESS,
        prompt="Hola",
        n=1,
        timeout_seconds=seconds,
    )
    until = time.monotonic() + seconds
    engine.submit(harmless)
    while time.monotonic() < until:
        if engine.collect():
            return True
        time.sleep(_BREATH)
    return False
