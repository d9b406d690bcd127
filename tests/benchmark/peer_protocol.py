"""A peer in a process of its own: started once, then one round for each line it is told.

Only the standard library: these run in environments that do not have this project. Standard output
belongs to the protocol; whatever the peer prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CACHES = ("reset_prefix_cache", "reset_mm_cache", "reset_encoder_cache")
"""What a vLLM server in development mode can be asked to forget."""


@dataclass(frozen=True)
class Turn:
    """One round: bodies of chat completions to answer, and where the answers go.

    `batch` is how many a system that has batches takes at once, 0 = as it finds best.
    """

    requests: Path
    answers: Path
    batch: int

    def bodies(self) -> dict[str, dict]:
        """The requests by their id, in order."""
        lines = map(json.loads, self.requests.read_text(encoding="utf-8").splitlines())
        return {line["id"]: line["body"] for line in lines}


class Wire:
    """What a child says to the benchmark, and hears from it."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # the peer's own prints

    def say(self, **facts: float) -> None:
        print(json.dumps(facts), file=self._out, flush=True)

    def turns(self) -> Iterator[Turn]:
        for line in sys.stdin:
            told = json.loads(line)
            yield Turn(Path(told["requests"]), Path(told["answers"]), told["batch"])


def serve(started: float, one_round: Callable[[Turn], float]) -> None:
    """Say how long the start took, then how long every round did, until the input ends.

    Args:
        started: seconds that the peer took to be ready.
        one_round: writes the answers and returns the seconds from the call to the last answer.
    """
    wire = Wire()
    wire.say(start=started)
    for turn in wire.turns():
        wire.say(seconds=one_round(turn))


def write_answers(path: Path, answers: dict[str, list[str]], tokens: int) -> None:
    """All texts of every request, and the tokens of all of them."""
    path.write_text(json.dumps({"texts": answers, "tokens": tokens}), encoding="utf-8")


def forget(url: str) -> None:
    """Empty the caches of a vLLM server, so that a round finds nothing of the last."""
    for name in CACHES:
        urllib.request.urlopen(urllib.request.Request(f"{url}/{name}", method="POST"), timeout=60)
