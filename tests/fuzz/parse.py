"""Feed random answers to every parser: `python -m tests.fuzz.parse --count 1000000`.

Fails on an exception, a number that is not finite, geometry outside the screen, a flag nobody
knows, or an answer that took more than a second of processor time. Not part of the test run.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter

from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import FrameKind, SeenImage, Size
from schemas.records import Parsed
from tests.fuzz.answers import answer
from transforms.parse import ANSWER_FORMATS, parse_answer
from transforms.parse.flags import FLAGS

SLOW = 1.0
CHAINS = (
    SeenImage.unchanged(Size(1920, 1080)),
    SeenImage.unchanged(Size(1366, 768)).resized(Size(2048, 1024)),
    SeenImage.unchanged(Size(32, 8000)).resized(Size(28, 6972)).placed(Size(1008, 6972), 0, 0),
)


def problem(parsed: Parsed, seen: SeenImage) -> str | None:
    """What is wrong with a result, or None."""
    if parsed.status is SampleStatus.OK and not parsed.items:
        return "ok without items"
    if parsed.items and parsed.status not in {SampleStatus.OK, SampleStatus.TRUNCATED}:
        return f"{parsed.status} with items"
    if unknown := set(parsed.flags) - set(FLAGS):
        return f"unknown flags {unknown}"
    for item in parsed.items:
        if item.point is None or not item.point.finite or not item.point.inside(seen.original):
            return f"point {item.point}"
        if item.box is not None:
            x1, y1, x2, y2 = item.box.corners
            inside = 0 <= x1 < x2 <= seen.original.width and 0 <= y1 < y2 <= seen.original.height
            if not inside or not all(map(math.isfinite, item.box.corners)):
                return f"box {item.box}"
    return None


def one(chance: random.Random, statuses: Counter[str]) -> tuple[float, str | None, str]:
    """Parse one random answer; its time, what went wrong, and the call for repeating it."""
    text = answer(chance)
    name = chance.choice(ANSWER_FORMATS)
    finish = chance.choice(("stop", "length"))
    frame, seen = chance.choice(tuple(FrameKind)), chance.choice(CHAINS)
    kind = chance.choice((None, *QueryKind))
    call = f"parse_answer({text!r}, {finish!r}, {name!r}, {frame!r}, {seen!r}, {kind!r})"
    began = time.process_time()
    try:
        parsed = parse_answer(text, finish, name, frame, seen, kind)
    except Exception as error:  # noqa: BLE001 # what it is for
        return 0.0, f"{type(error).__name__}: {error}", call
    took = time.process_time() - began
    statuses[f"{name} {parsed.status}"] += 1
    return took, problem(parsed, seen), call


def main() -> int:
    """Run, print the figures, and say by the exit status whether all went well."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    chance = random.Random(given.seed)
    statuses: Counter[str] = Counter()
    slowest, total, bad = 0.0, 0.0, 0
    for _ in range(given.count):
        took, wrong, call = one(chance, statuses)
        total += took
        slowest = max(slowest, took)
        if wrong is not None or took > SLOW:
            bad += 1
            print(f"{wrong or f'took {took:.2f} s'}: {call}")
    for name, amount in sorted(statuses.items()):
        print(f"{name:40} {amount:>9,}")
    rate = given.count / total if total else 0.0
    print(f"{given.count:,} answers, {bad} bad")
    print(f"{rate:,.0f} answers/s, slowest {slowest * 1000:.1f} ms")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
