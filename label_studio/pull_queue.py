"""The queue of a project: what was finished lately, and taking out what nobody has touched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import httpx
from pydantic import BaseModel, ConfigDict, TypeAdapter

from label_studio.client import StudioClient
from label_studio.failures import explained
from label_studio.pull import annotations_of, server_tasks
from label_studio.pull_http import get_json, server_time, task_filter, validated
from schemas.errors import LabelStudioError

REMOVE_BATCH = 100
"""Tasks removed in one request, and looked at just before it."""

_PAGE = 100_000
_ONCE = {"max_retries": 0, "timeout_in_seconds": 180}
_OK = (httpx.codes.OK, httpx.codes.CREATED)


class FinishedTask(BaseModel):
    """A task with as many annotations as the project wants.

    Attributes:
        completed_at: when the newest of them was made.
        avg_lead_time: seconds, over its annotations; None where the server knows none.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    completed_at: datetime
    avg_lead_time: float | None = None


def finished_since(client: StudioClient, project_id: int, since: datetime) -> list[FinishedTask]:
    """The tasks that were finished at or after `since`.

    Raises:
        LabelStudioError: the server cannot be read.
    """
    wanted = [task_filter("completed_at", "greater_or_equal", "Datetime", server_time(since))]
    params = {
        "project": project_id,
        "query": json.dumps({"filters": {"conjunction": "and", "items": wanted}}),
        "fields": "all",  # the server computes these two columns only for it
        "include": "id,completed_at,avg_lead_time",
        "page_size": _PAGE,
    }
    action = "listing finished tasks"
    reply = get_json(client, "api/tasks/", params, action)
    tasks = reply.get("tasks") if isinstance(reply, dict) else None
    return validated(TypeAdapter(list[FinishedTask]), tasks, action)


def remove_untouched(client: StudioClient, project_id: int, task_ids: Sequence[int]) -> int:
    """Remove those of these tasks that nobody has answered, skipped or begun.

    The annotations themselves are looked for just before, since the server's counts of them can
    be wrong, and the server is told to pass over tasks with an answer, so that one that comes in
    between is safe.

    Returns:
        How many of them are gone.

    Raises:
        LabelStudioError: the server refuses; what was removed until then stays removed.
    """
    wanted, gone = set(task_ids), 0
    untouched = [
        task.id
        for page in server_tasks(client, project_id)
        for task in page
        if task.id in wanted and not task.touched
    ]
    for start in range(0, len(untouched), REMOVE_BATCH):
        batch = untouched[start : start + REMOVE_BATCH]
        answered = annotations_of(client, project_id, batch)
        batch = [task_id for task_id in batch if not answered.get(task_id)]
        gone += _remove(client, project_id, batch) if batch else 0
    return gone


def _remove(client: StudioClient, project_id: int, task_ids: Sequence[int]) -> int:
    unanswered = [
        task_filter(column, "equal", "Number", 0)
        for column in ("total_annotations", "cancelled_annotations")
    ]
    action = f"removing {len(task_ids)} tasks"
    with explained(action, private=True):
        reply = client.sdk._client_wrapper.httpx_client.request(
            "api/dm/actions",
            method="POST",
            params={"id": "delete_tasks", "project": project_id},
            json={
                "filters": {"conjunction": "and", "items": unanswered},
                "selectedItems": {"all": False, "included": list(task_ids)},
            },
            request_options=_ONCE,
        )
    if reply.status_code not in _OK:
        raise LabelStudioError(f"{action}: the server answered {reply.status_code}")
    with explained(action, private=True):
        done = reply.json()["processed_items"]
    return int(done)
