"""Reads what people did on a server: the tasks that changed, then their annotations.

Tasks are listed by `updated_at`, which every annotation that is made, edited or deleted touches;
pages go by task id, since page numbers shift while people work. The annotations themselves come
from an export of just those tasks: only an export tells an annotation's `unique_id`, and SQLite
gives the plain id to another one after a deletion. As after any export, the server keeps a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, TypeAdapter

from label_studio.client import StudioClient
from label_studio.pull_http import (
    ServerTask,
    get_json,
    list_tasks,
    server_time,
    task_filter,
    validated,
)
from label_studio.pull_review import ExportedAnnotation
from schemas.errors import LabelStudioError
from schemas.ids import content_id
from schemas.reviews import Versions

PAGE = 500
"""Tasks in one list, and the most that are held at once."""

EXPORT_BATCH = 200
"""Tasks in one export: their ids fill about 3,500 characters of the address, and proxies refuse
addresses beyond 8,000."""

_HASH_DIGITS = 12


class _ExportedTask(BaseModel):
    id: int
    annotations: list[ExportedAnnotation]


class _Project(BaseModel):
    label_config: str = ""
    expert_instruction: str | None = None


@dataclass(frozen=True, slots=True)
class PulledTask:
    """A task that changed, with all annotations it has now; none where they were deleted."""

    task: ServerTask
    annotations: tuple[ExportedAnnotation, ...]


def find_project(client: StudioClient, title: str) -> int:
    """The id of the one project of that title; nothing is made.

    Raises:
        LabelStudioError: there is none, or several.
    """
    ids = client.project_ids(title)
    if not ids:
        raise LabelStudioError(f"the server has no project {title!r}: `pantalla push` makes it")
    if len(ids) > 1:
        raise LabelStudioError(
            f"{len(ids)} projects are called {title!r} (ids {ids}): rename all but one"
        )
    return ids[0]


def versions_of(client: StudioClient, project_id: int) -> Versions:
    """The server's version, and hashes of the interface and guide that the project has now."""
    server = get_json(client, "api/version", {}, "reading the server's version")
    release = server.get("release") if isinstance(server, dict) else None
    action = f"reading project {project_id}"
    project = validated(
        _Project, get_json(client, f"api/projects/{project_id}/", {}, action), action
    )
    return Versions(
        server=str(release or ""),
        interface=_digest(project.label_config),
        guide=_digest(project.expert_instruction or ""),
    )


def latest_change(client: StudioClient, project_id: int) -> datetime | None:
    """The newest `updated_at` of the project's tasks by the server's clock; None without tasks."""
    params = {"ordering": ["-tasks:updated_at"]}
    tasks, _ = list_tasks(client, project_id, params, 1)
    return tasks[0].updated_at if tasks else None


def server_tasks(
    client: StudioClient, project_id: int, since: datetime | None = None
) -> Iterator[list[ServerTask]]:
    """The tasks of a project that changed at or after `since`, by id, a page at a time.

    Raises:
        LabelStudioError: the server cannot be read, or lists what was not asked for.
    """
    last = 0
    while True:
        items = [task_filter("id", "greater", "Number", last)]
        if since is not None:
            moment = server_time(since)
            items.append(task_filter("updated_at", "greater_or_equal", "Datetime", moment))
        query = {
            "filters": {"conjunction": "and", "items": items},
            "ordering": ["tasks:id"],
        }
        tasks, total = list_tasks(client, project_id, query, PAGE)
        _check_asked_for(tasks, last, since)
        if tasks:
            yield tasks
            last = tasks[-1].id
        if total <= len(tasks):
            return


def with_annotations(
    client: StudioClient, project_id: int, tasks: Sequence[ServerTask]
) -> Iterator[PulledTask]:
    """The tasks with all their annotations, skipped ones included.

    All are exported, whatever the list counts: when predictions are imported while people work,
    the server was seen to write a count of 0 over that of a task with an answer, for good.

    Raises:
        LabelStudioError: the list counts annotations that the export lacks: what a read lost must
            not be taken for deleted.
    """
    found: dict[int, tuple[ExportedAnnotation, ...]] = {}
    for start in range(0, len(tasks), EXPORT_BATCH):
        ids = [task.id for task in tasks[start : start + EXPORT_BATCH]]
        found.update(annotations_of(client, project_id, ids))
    missing = [task for task in tasks if _has_answers(task) and not found.get(task.id)]
    still = _still_answered(client, project_id, missing)
    if still:
        raise LabelStudioError(
            f"task {still[0].id} has annotations by the server's list, but none in its export "
            f"({len(still)} such tasks); nothing was taken for deleted, try again"
        )
    for task in tasks:
        yield PulledTask(task, found.get(task.id, ()))


def _has_answers(task: ServerTask) -> bool:
    return bool(task.total_annotations or task.cancelled_annotations)


def _still_answered(
    client: StudioClient, project_id: int, tasks: Sequence[ServerTask]
) -> list[ServerTask]:
    """Of tasks without annotations in their export, those that the list still says have some."""
    still = []
    for task in tasks:
        query = {"filters": _only(task.id)}
        again, _ = list_tasks(client, project_id, query, 1)
        still += [listed for listed in again if _has_answers(listed)]
    return still


def annotations_of(
    client: StudioClient, project_id: int, task_ids: Sequence[int]
) -> dict[int, tuple[ExportedAnnotation, ...]]:
    """The annotations of those of these tasks that have any; at most `EXPORT_BATCH` tasks.

    Raises:
        LabelStudioError: the server cannot be read.
    """
    action = f"exporting {len(task_ids)} tasks"
    params = {"exportType": "JSON", "ids[]": list(task_ids)}
    reply = get_json(client, f"api/projects/{project_id}/export", params, action)
    tasks = validated(TypeAdapter(list[_ExportedTask]), reply, action)
    return {task.id: tuple(task.annotations) for task in tasks}


def _only(task_id: int) -> dict[str, object]:
    return {"conjunction": "and", "items": [task_filter("id", "equal", "Number", task_id)]}


def _check_asked_for(tasks: Sequence[ServerTask], last: int, since: datetime | None) -> None:
    """A server that ignores a filter it does not know would send the same page for ever."""
    for task in tasks:
        if task.id <= last or (since is not None and task.updated_at < since):
            raise LabelStudioError(f"listing tasks: the server sent task {task.id} unasked")
        last = task.id


def _digest(text: str) -> str:
    return content_id(text, length=_HASH_DIGITS)
