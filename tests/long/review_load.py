"""Two people review while pushes and pulls are killed: each sample once, each review once.

    python -m tests.long.review_load --tasks 2000              # on SQLite
    python -m tests.long.review_load --tasks 2000 --postgres   # on PostgreSQL

Three pushes, the first two killed with SIGKILL, and pulls all the while, killed too. At the end
the server holds each sample once with one prediction, and the dataset each version of each review
once; that is read from the server's own API, not through our code. Prints what it measured.
"""

# ruff: noqa: E402 - run as a script, it has to say first where its neighbours are

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in (TESTS, TESTS / "pipeline"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import httpx
from reviewers import Answer, Worker, invited, owner
from stored_fixtures import Ask, Stored, make_stored
from studio_server import TOKEN_ENV, free_port, fresh_data

from label_studio.database import DatabaseKind
from label_studio.postgres import cluster_folder
from label_studio.pull_http import task_filter
from label_studio.server import StudioServer
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset
from pipeline.pull import pull_dataset
from pipeline.pull_records import ReviewRecord, review_records
from pipeline.push import push_dataset

PROJECT = "Carga: dos personas"
ASKS = 20
SIZE = (320, 240)
PACE_S = (0.1, 0.5)
"""Pause of a person between two answers: ten times faster than people are."""
SLOW_S = (1.0, 3.0)
"""The same once there are answers enough: the pushes are still to be disturbed, not stopped."""


@dataclass
class Figures:
    """What a load run measured.

    Attributes:
        pushed_per_s: tasks a second of the last, undisturbed push of what was missing.
        server_errors: 5xx that the people met.
        versions: rows of `reviews`; `standing` of them are the last of reviews that still stand.
    """

    tasks: int
    push_kills: int = 0
    pull_kills: int = 0
    pulls: int = 0
    pushed_per_s: float = 0.0
    noop_push_s: float = 0.0
    noop_pull_s: float = 0.0
    full_pull_s: float = 0.0
    versions: int = 0
    standing: int = 0
    answered: int = 0
    server_errors: int = 0


@dataclass
class Load:
    """One load run: its server, its dataset and the people on it."""

    server: StudioServer
    dataset: Dataset
    figures: Figures
    answers: int
    chance: random.Random
    workers: list[Worker] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    trouble: list[BaseException] = field(default_factory=list)

    def run(self) -> Figures:
        """Work, then prove what the module promises."""
        people = [
            owner(self.server),
            invited(self.server, "ana@example.com", "una-clave-larga"),
        ]
        self.workers = [Worker(http, random.Random(n), []) for n, http in enumerate(people)]
        self.kill_push(after=len(self.samples()) // 4)
        threads = [
            threading.Thread(target=self.guarded, args=(self.review, number))
            for number in range(len(self.workers))
        ]
        threads.append(threading.Thread(target=self.guarded, args=(self.keep_pulling,)))
        for thread in threads:
            thread.start()
        try:
            self.kill_push(after=len(self.samples()) // 2)
            self.last_push()
            while sum(len(worker.answers) for worker in self.workers) < self.answers:
                assert not self.trouble, self.trouble
                time.sleep(0.2)
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join()
        assert not self.trouble, self.trouble
        self.settle()
        self.prove_tasks()
        self.prove_reviews()
        for http in people:
            http.close()
        return self.figures

    def guarded(self, work: Callable[..., None], *arguments: int) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            self.trouble.append(error)
            self.stopped.set()

    def samples(self) -> list[str]:
        return list(dict.fromkeys(self.dataset.table("annotations")["sample_id"].to_pylist()))

    def verb(self, *words: str) -> subprocess.Popen[str]:
        """One of our commands, as a process of its own."""
        options = ["--url", self.server.url, "--project", PROJECT, "--token-env", TOKEN_ENV]
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline.cli.app", *words, self.dataset.uri, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill_push(self, after: int) -> None:
        """Start a push and kill it once the server holds more than `after` tasks."""
        push = self.verb("push")
        while push.poll() is None and self.task_count() <= after:
            time.sleep(0.5)
        time.sleep(self.chance.uniform(0, 0.3))
        if push.poll() is None:
            push.kill()
            self.figures.push_kills += 1
        push.communicate()

    def last_push(self) -> None:
        """Push what is left until nothing waits."""
        missing = self.figures.tasks - self.task_count()
        started = time.monotonic()
        for _ in range(10):
            push = self.verb("push")
            said, _ = push.communicate()
            if push.returncode == 0:
                break
        assert push.returncode == 0, said
        self.figures.pushed_per_s = missing / (time.monotonic() - started)

    def review(self, number: int) -> None:
        """Answer tasks of one's own until there are enough answers."""
        worker = self.workers[number]
        while not self.stopped.is_set():
            for task_id in self.unanswered(number):
                if self.stopped.is_set():
                    return
                worker.work(task_id)
                enough = sum(len(other.answers) for other in self.workers) >= self.answers
                self.stopped.wait(worker.chance.uniform(*(SLOW_S if enough else PACE_S)))
            self.stopped.wait(1.0)

    def keep_pulling(self) -> None:
        """Pull all the while; every second pull is killed at a random moment."""
        while not self.stopped.is_set():
            self.stopped.wait(1.0)
            pull = self.verb("pull")
            self.figures.pulls += 1
            if self.figures.pulls % 2:
                try:
                    pull.wait(self.chance.uniform(0.5, 6.0))
                except subprocess.TimeoutExpired:
                    pull.kill()
                    self.figures.pull_kills += 1
                pull.communicate()
                continue
            said, _ = pull.communicate()
            # The first ones may come before the project.
            assert pull.returncode == 0 or "has no project" in said, said

    def settle(self) -> None:
        """Everything once more, undisturbed, and how long it takes when nothing is left to do.

        Timed within this process: starting a Python that imports the client takes seconds.
        """
        for word in ("push", "pull"):
            verb = self.verb(word)
            said, _ = verb.communicate()
            assert verb.returncode == 0, said
        settings = LabelStudioConfig(url=self.server.url, project=PROJECT, token_env=TOKEN_ENV)
        self.figures.noop_push_s = timed(lambda: push_dataset(self.dataset, settings))
        self.figures.noop_pull_s = timed(lambda: pull_dataset(self.dataset, settings))
        self.figures.full_pull_s = timed(lambda: pull_dataset(self.dataset, settings, full=True))

    def task_count(self) -> int:
        with owner(self.server) as http:
            found = http.get("/api/projects/", params={"title": PROJECT}).json()["results"]
        return sum(item["task_number"] for item in found if item["title"] == PROJECT)

    def unanswered(self, number: int) -> list[int]:
        """Some tasks that nobody has touched, apart for each person."""
        with owner(self.server) as http:
            columns = ("total_annotations", "cancelled_annotations")
            items = [task_filter(column, "equal", "Number", 0) for column in columns]
            query = {"filters": {"conjunction": "and", "items": items}}
            params = {"project": self.project(http), "query": json.dumps(query)}
            fields = {"fields": "task_only", "include": "id", "page_size": 60}
            found = http.get("/api/tasks/", params={**params, **fields}).json()["tasks"]
        return [task["id"] for task in found if task["id"] % len(self.workers) == number]

    def project(self, http: httpx.Client) -> int | None:
        found = http.get("/api/projects/", params={"title": PROJECT}).json()["results"]
        ids = [project["id"] for project in found if project["title"] == PROJECT]
        return ids[0] if ids else None

    def tasks(self) -> list[dict]:
        """Every task of the project, by the server's own API."""
        with owner(self.server) as http:
            project = self.project(http)
            if project is None:
                return []
            fields = "id,data,total_predictions,total_annotations"
            params = {"project": project, "fields": "task_only", "include": fields}
            reply = http.get("/api/tasks/", params={**params, "page_size": 100_000})
            return list(reply.json()["tasks"])

    def prove_tasks(self) -> None:
        """Each sample once, each with its prediction."""
        tasks = self.tasks()
        wanted = Counter(self.samples())
        assert Counter(task["data"]["sample_id"] for task in tasks) == wanted
        assert {task["total_predictions"] for task in tasks} == {1}

    def prove_reviews(self) -> None:
        """Each version of each review once, and what stands is what the people hold true."""
        rows = self.dataset.reviews().to_pylist()
        ids = [row["review_id"] for row in rows]
        assert len(set(ids)) == len(ids), "a review is in Parquet twice"
        on_disk = sum(record.part.rows for record in records(self.dataset))
        assert on_disk == len(rows)
        assert len(list(Path(self.dataset.uri, "reviews").iterdir())) == len(records(self.dataset))
        held = {a.annotation_id: a for w in self.workers for a in w.answers if a.result is not None}
        standing = self.dataset.reviews(latest=True).to_pylist()
        by_number = {row["annotation_id"]: row for row in standing}
        assert len(by_number) == len(standing)
        lost, extra = held.keys() - by_number.keys(), by_number.keys() - held.keys()
        every = {row["annotation_id"]: row for row in rows}
        assert not lost, [every.get(number, held[number]) for number in lost]
        assert not extra, [by_number[number] for number in extra]
        for number, row in by_number.items():
            compare(row, held[number])
        self.figures.versions, self.figures.standing = len(rows), len(standing)
        self.figures.answered = sum(len(worker.answers) for worker in self.workers)
        self.figures.server_errors = sum(worker.errors for worker in self.workers)


def timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def records(dataset: Dataset) -> list[ReviewRecord]:
    return review_records(dataset.storage, dataset.uri)


def compare(row: dict, answer: Answer) -> None:
    """Whether a row says what a person did, to the pixel."""
    assert answer.result is not None
    assert json.loads(row["result"]) == answer.result
    assert (row["task_id"], row["skipped"]) == (answer.task_id, answer.skipped)
    if answer.skipped:
        assert (row["verdict"], row["x1"]) == ("none", None)
        return
    assert row["verdict"] == answer.result[0]["value"]["choices"][0]
    corners = [row[name] for name in ("x1", "y1", "x2", "y2")]
    if row["verdict"] == "absent":
        assert corners == [None] * 4
        return
    value = answer.result[1]["value"]
    left, top = value["x"] * SIZE[0] / 100, value["y"] * SIZE[1] / 100
    across, down = value["width"] * SIZE[0] / 100, value["height"] * SIZE[1] / 100
    wanted = [round(edge, 6) for edge in (left, top, left + across, top + down)]
    assert corners == wanted


def load_dataset(folder: Path, tasks: int) -> Dataset:
    """A dataset of `tasks` samples for review, twenty to a screen."""
    screens = []
    for start in range(0, tasks, ASKS):
        asks = tuple(
            Ask(f"Abrir {n}", point=(n % 300, n % 200), probability=n / tasks)
            for n in range(start, min(start + ASKS, tasks))
        )
        colour = (start % 256, start // 256 % 256, 7)
        screens.append(Stored(f"pantalla-{start}", asks, size=SIZE, colour=colour))
    return make_stored(folder, screens, unit_screens=16)


@contextmanager
def load_server(folder: Path, database: DatabaseKind) -> Iterator[StudioServer]:
    data = folder / "studio"
    if database is DatabaseKind.SQLITE:
        fresh_data(data)
    try:
        with StudioServer(data, free_port(), database) as server:
            os.environ[TOKEN_ENV] = server.account.token
            yield server
    finally:
        if database is DatabaseKind.POSTGRESQL:  # of root's it lies elsewhere
            shutil.rmtree(cluster_folder(data), ignore_errors=True)


def run_load(
    server: StudioServer, folder: Path, tasks: int, answers: int, seed: int = 0
) -> Figures:
    """Run and prove one load; see the module."""
    dataset = load_dataset(folder, tasks)
    return Load(server, dataset, Figures(tasks), answers, random.Random(seed)).run()


def main() -> None:
    """The command line of this script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--answers", type=int, default=400, help="reviews to wait for")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    database = DatabaseKind.POSTGRESQL if given.postgres else DatabaseKind.SQLITE
    with tempfile.TemporaryDirectory(prefix="pantalla-carga-") as name:
        folder = Path(name)
        with load_server(folder, database) as server:
            print(server.database, flush=True)
            figures = run_load(server, folder, given.tasks, given.answers, given.seed)
    for key, value in vars(figures).items():
        print(f"{key:<14}{value:.2f}" if isinstance(value, float) else f"{key:<14}{value}")


if __name__ == "__main__":
    main()
