"""The fake Label Studio with people in it: what a pull needs, in the shapes of a real 1.23.2.

Times are of the server's own clock, a second for each thing that happens. Replies are like those
of the real server; `test_review_load.py` and `test_review_browser.py` pull from that one.
"""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fake_studio import FakeState, Handler, serve

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class ReviewState(FakeState):
    """What the server holds beside tasks.

    Attributes:
        reuse_ids: whether the id of a deleted annotation is given again, as SQLite does.
        hide: tasks whose annotations an export leaves out, as a lost read would.
        uncounted: tasks whose annotations the server counts as none, as 1.23.2 does after a race.
        ignore_filters: whether lists hold everything whatever was asked.
    """

    annotations: list[dict[str, Any]] = field(default_factory=list)
    ticks: int = 0
    last_annotation: int = 0
    reuse_ids: bool = False
    hide: set[int] = field(default_factory=set)
    uncounted: set[int] = field(default_factory=set)
    ignore_filters: bool = False

    def now(self) -> str:
        self.ticks += 1
        return written(START + timedelta(seconds=self.ticks))

    def task(self, sample_id: str) -> dict[str, Any]:
        return next(t for t in self.tasks if t["data"]["sample_id"] == sample_id)

    def touch(self, task: dict[str, Any]) -> None:
        task["updated_at"] = self.now()

    def annotate(
        self,
        sample_id: str,
        result: list[Any],
        reviewer: int = 1,
        *,
        skipped: bool = False,
        lead_time: float | None = 12.5,
    ) -> dict[str, Any]:
        """A person answers a task."""
        task = self.task(sample_id)
        used = [entry["id"] for entry in self.annotations]
        number = max(used, default=0) + 1 if self.reuse_ids else self.last_annotation + 1
        self.last_annotation = max(number, self.last_annotation)
        now = self.now()
        entry = {
            "id": number,
            "task": task["id"],
            "project": task["project"],
            "completed_by": reviewer,
            "result": result,
            "was_cancelled": skipped,
            "created_at": now,
            "updated_at": now,
            "lead_time": lead_time,
            "unique_id": str(uuid.UUID(int=self.ticks)),
        }
        self.annotations.append(entry)
        self.touch(task)
        return entry

    def edit(self, entry: dict[str, Any], result: list[Any]) -> None:
        entry["result"], entry["updated_at"] = result, self.now()
        self.touch(next(task for task in self.tasks if task["id"] == entry["task"]))

    def delete(self, entry: dict[str, Any]) -> None:
        self.annotations.remove(entry)
        self.touch(next(task for task in self.tasks if task["id"] == entry["task"]))

    def of_task(self, task_id: int) -> list[dict[str, Any]]:
        return [entry for entry in self.annotations if entry["task"] == task_id]


class ReviewHandler(Handler):
    state: ReviewState

    def _answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> object:
        if path.endswith("/export"):
            return self._export(query)
        if path == "/api/dm/actions":
            return self._action_on_tasks(json.loads(body))
        return super()._answer(method, path, query, body)

    def _tasks(self, query: dict[str, list[str]]) -> object:
        asked = json.loads(query["query"][0])
        items = asked.get("filters", {}).get("items", [])
        if any(item["filter"].startswith("filter:tasks:data") for item in items):
            return super()._tasks(query)
        project = int(query["project"][0])
        found = [
            listed
            for task in self.state.tasks
            if task["project"] == project
            and (listed := self._listed(task))
            and (self.state.ignore_filters or all(passes(listed, item) for item in items))
        ]
        for column in reversed(asked.get("ordering", [])):
            key = column.removeprefix("-").removeprefix("tasks:")
            found.sort(key=lambda task, key=key: task[key], reverse=column.startswith("-"))
        size = int(query["page_size"][0])
        return {"tasks": found[:size], "total": len(found)}

    def _listed(self, task: dict[str, Any]) -> dict[str, Any]:
        entries = self.state.of_task(task["id"])
        if task["id"] in self.state.uncounted:
            entries = []
        skipped = sum(entry["was_cancelled"] for entry in entries)
        labeled = len(entries) > skipped
        times = [entry["lead_time"] for entry in entries if entry["lead_time"] is not None]
        return {
            "id": task["id"],
            "data": task["data"],
            "updated_at": task.setdefault("updated_at", written(START)),
            "total_annotations": len(entries) - skipped,
            "cancelled_annotations": skipped,
            "drafts": task.get("drafts", []),
            "is_labeled": labeled,
            "completed_at": max(e["created_at"] for e in entries) if labeled else None,
            "avg_lead_time": sum(times) / len(times) if times else None,
        }

    def _export(self, query: dict[str, list[str]]) -> object:
        wanted = {int(number) for number in query["ids[]"]}
        return [
            {"id": task["id"], "data": task["data"], "annotations": entries}
            for task in self.state.tasks
            if task["id"] in wanted - self.state.hide
            and (entries := self.state.of_task(task["id"]))
        ]

    def _action_on_tasks(self, asked: dict[str, Any]) -> object:
        included = set(asked["selectedItems"]["included"])
        items = asked["filters"]["items"]
        gone = [
            task
            for task in self.state.tasks
            if task["id"] in included and all(passes(self._listed(task), item) for item in items)
        ]
        self.state.tasks = [task for task in self.state.tasks if task not in gone]
        return {"processed_items": len(gone)}


def written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def passes(listed: dict[str, Any], item: dict[str, Any]) -> bool:
    """Whether a listed task passes one filter of the Data Manager."""
    value = listed[item["filter"].removeprefix("filter:tasks:")]
    if item["operator"] == "greater":
        return bool(value > item["value"])
    if item["operator"] == "greater_or_equal":
        assert re.fullmatch(r".{10}T.{8}\.\d{6}Z", item["value"]), "the real server reads no other"
        return value is not None and bool(value >= item["value"])
    assert item["operator"] == "equal", item
    return bool(value == item["value"])


@contextmanager
def fake_reviews() -> Iterator[tuple[str, ReviewState]]:
    """A fake server with people in it, on a free loopback port."""
    state = ReviewState()
    with serve(ReviewHandler, state) as url:
        yield url, state
