"""How fast samples reach a real Label Studio: `python -m tests.benchmark.push_speed [TASKS]`.

Starts a server of its own on SQLite, pushes TASKS samples (2,000) about two screens, each with a
box, a point and a candidate, and pushes them again, which adds nothing. Figures are printed,
nothing is asserted.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from label_studio.client import ServerSettings
from label_studio.push import PushReport, push_samples
from schemas.geometry import Point
from schemas.records import Item

TESTS = Path(__file__).resolve().parents[1]
DEFAULT_TASKS = 2000


def cases() -> tuple[ModuleType, ModuleType]:
    """What the tests push, and the server they push to."""
    sys.path[:0] = [str(TESTS), str(TESTS / "label_studio")]
    return import_module("review_cases"), import_module("studio_server")


def timed(
    review_cases: ModuleType, tasks: int, server: ServerSettings, folder: Path
) -> tuple[float, PushReport]:
    """Seconds of one push, and what it did."""
    other = (Item(point=Point(900, 600)),)
    samples = [
        replace(sample, candidates=other, priority=n / tasks)
        for n, sample in enumerate(review_cases.many(tasks))
    ]
    began = time.perf_counter()
    report = push_samples(samples, review_cases.image_of, server, lock_dir=folder)
    return time.perf_counter() - began, report


def main() -> None:
    """Print tasks per second, and the seconds of a push that has nothing to do."""
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_TASKS
    review_cases, studio_server = cases()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with studio_server.studio_server(folder / "studio") as studio:
            server = ServerSettings(studio.url, "Velocidad", studio_server.TOKEN_ENV)
            seconds, report = timed(review_cases, tasks, server, folder)
            print(
                f"first push   {report.added:6} tasks in {seconds:6.1f} s"
                f" = {report.added / seconds:.0f} tasks/s, {len(report.failed)} failed"
            )
            seconds, report = timed(review_cases, tasks, server, folder)
            print(f"no-op push   {report.existing:6} tasks in {seconds:6.1f} s, {report.added} new")


if __name__ == "__main__":
    main()
