"""Reading requests to a server, and its tasks as it lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from label_studio.client import StudioClient
from label_studio.failures import explained
from schemas.errors import LabelStudioError

_FIELDS = "id,data,updated_at,total_annotations,cancelled_annotations,drafts,is_labeled"
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
"""The only way the server reads a time in a filter."""

_READ = {"max_retries": 2, "timeout_in_seconds": 180}

_Model = TypeVar("_Model")


class ServerTask(BaseModel):
    """One task as the server lists it.

    Attributes:
        total_annotations: without skipped ones; those are `cancelled_annotations`.
        drafts: unsent work of reviewers.
        is_labeled: whether it has as many annotations as the project wants.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    data: Mapping[str, JsonValue]
    updated_at: datetime
    total_annotations: int = 0
    cancelled_annotations: int = 0
    drafts: Sequence[JsonValue] = ()
    is_labeled: bool = False

    @property
    def sample_id(self) -> str:
        """The sample it asks about; empty for a task that is not ours."""
        return str(self.data.get("sample_id") or "")

    @property
    def screen_id(self) -> str:
        """The screen it shows."""
        return str(self.data.get("screen_id") or "")

    @property
    def touched(self) -> bool:
        """Whether anyone answered, skipped or began it."""
        return bool(self.total_annotations or self.cancelled_annotations or self.drafts)


class _TaskPage(BaseModel):
    tasks: list[ServerTask]
    total: int


def list_tasks(
    client: StudioClient, project_id: int, query: Mapping[str, object], page_size: int
) -> tuple[list[ServerTask], int]:
    """The first page of the tasks that a Data Manager query finds, and how many it finds.

    Raises:
        LabelStudioError: the server cannot be read.
    """
    params = {
        "project": project_id,
        "query": json.dumps(query),
        "fields": "task_only",
        "include": _FIELDS,
        "page_size": page_size,
        "resolve_uri": "false",
    }
    action = "listing tasks"
    page = validated(_TaskPage, get_json(client, "api/tasks/", params, action), action)
    return page.tasks, page.total


def task_filter(column: str, operator: str, kind: str, value: object) -> dict[str, object]:
    """One filter of a Data Manager query; a time is written by `server_time`.

    The server takes an operator that it does not know for `equal`: what comes back is checked.
    """
    return {
        "filter": f"filter:tasks:{column}",
        "operator": operator,
        "type": kind,
        "value": value,
    }


def server_time(moment: datetime) -> str:
    """A moment as the server reads it in a filter."""
    return moment.astimezone(UTC).strftime(_TIME_FORMAT)


def get_json(
    client: StudioClient, path: str, params: Mapping[str, object], action: str
) -> JsonValue:
    """One reading request; the reply may hold task text, so it never reaches a message."""
    with explained(action, private=True):
        # The SDK's own models drop or reject fields by version; its HTTP client carries the token.
        reply = client.sdk._client_wrapper.httpx_client.request(
            path, method="GET", params=dict(params), request_options=_READ
        )
    if reply.status_code != httpx.codes.OK:
        raise LabelStudioError(f"{action}: the server answered {reply.status_code}")
    with explained(action, private=True):
        parsed: JsonValue = reply.json()
    return parsed


def validated(kind: type[_Model] | TypeAdapter[_Model], reply: JsonValue, action: str) -> _Model:
    """A reply as what it should be.

    Raises:
        LabelStudioError: it is something else; says where, never what.
    """
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_python(reply)
    except ValidationError as error:
        where = error.errors(include_input=False, include_url=False)[0]["loc"]
        raise LabelStudioError(
            f"{action}: the answer is not what Label Studio sends (at {where})"
        ) from None
