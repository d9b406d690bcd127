"""The few calls we need of a Label Studio server, typed; every write is sent once, never retried.

The SDK retries a POST on 408, 409, 429 and 5xx, although the server may have done it: that doubles
tasks. Retries are off here; `label_studio.push` looks up what exists instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx
from label_studio_sdk import LabelStudio
from label_studio_sdk.data_manager import Column, Filters, Operator, Type

from label_studio.access import RenewedAccess
from label_studio.failures import OutcomeUnknownError, explained, redirect_hint
from label_studio.tasks import PredictionPayload, TaskData
from schemas.errors import LabelStudioError

LOOKUP_CHUNK = 100
"""Sample ids in one lookup: 0.3 s measured, and the address stays far below proxies' limits."""

_PAGE = 1000
"""Rows of a list. Only the first page is read: the SDK's pager always asks for one page more."""
_ONCE = {"max_retries": 0, "timeout_in_seconds": 180}
"""For writes: under contention on SQLite one import was seen to take 96 s."""
_TITLE_FIELDS = "id,title"
_LOOKUP_FIELDS = "id,data,total_predictions,total_annotations,cancelled_annotations,overlap"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where to push.

    Attributes:
        url: base address of the server, as the reviewers' browser opens it.
        project: title of the project, 3 to 50 characters; found or made.
        token_env: name of the environment variable with the API token (legacy or personal).
        timeout_s: limit of one reading request.
        settle_waits_s: pauses between lookups after a write whose outcome is unknown.
    """

    url: str
    project: str
    token_env: str = "LABEL_STUDIO_API_KEY"  # noqa: S105 - the name of a variable, not a secret
    timeout_s: float = 60.0
    settle_waits_s: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


@dataclass(frozen=True, slots=True)
class TaskRef:
    """One task on the server: its id is reused by SQLite, so the sample id is the key.

    Attributes:
        annotation_count: answers, skipped ones included.
        overlap: answers the task waits for.
        data: what it shows, as the server has it.
    """

    task_id: int
    sample_id: str
    prediction_count: int
    annotation_count: int = 0
    overlap: int = 1
    data: Mapping[str, object] = field(default_factory=dict)


class StudioClient:
    """Calls on one server. Not thread-safe; close it after use."""

    def __init__(self, sdk: LabelStudio, http: httpx.Client) -> None:
        self.sdk = sdk
        self._http = http

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def project_ids(self, title: str) -> list[int]:
        """Ids of the projects with exactly this title, lowest first."""
        with explained("listing projects"):
            page = self.sdk.projects.list(title=title, include=_TITLE_FIELDS, page_size=_PAGE)
            found = list(page.items or [])
        return sorted(project.id for project in found if project.title == title)

    def lookup(self, project_id: int, sample_ids: Iterable[str]) -> list[TaskRef]:
        """Tasks of a project that carry one of these sample ids, duplicates included."""
        wanted = list(sample_ids)
        refs: list[TaskRef] = []
        for start in range(0, len(wanted), LOOKUP_CHUNK):
            refs.extend(self._lookup_chunk(project_id, wanted[start : start + LOOKUP_CHUNK]))
        return refs

    def _lookup_chunk(self, project_id: int, sample_ids: list[str]) -> list[TaskRef]:
        wanted = Filters.item(
            Column.data("sample_id"), Operator.IN_LIST, Type.List, list(sample_ids)
        )
        query = json.dumps({"filters": Filters.create(Filters.AND, [wanted])})
        with explained(f"looking up {len(sample_ids)} samples"):
            page = self.sdk.tasks.list(
                project=project_id,
                query=query,
                fields="task_only",
                include=_LOOKUP_FIELDS,
                page_size=_PAGE,
            )
            tasks = list(page.items or [])
        if len(tasks) >= _PAGE:
            raise LabelStudioError(
                f"project {project_id} holds {len(tasks)} or more tasks for {len(sample_ids)} "
                "samples: remove duplicates in the Data Manager first"
            )
        # A server that ignores the filter would make every task look wanted.
        known = set(sample_ids)
        return [ref for ref in map(_task_ref, tasks) if ref.sample_id in known]

    def import_tasks(self, project_id: int, tasks: Sequence[TaskData]) -> None:
        """Add tasks without predictions: inline ones are lost when SQLite is busy.

        Raises:
            OutcomeUnknownError: if the server's count is not ours.
        """
        action = f"importing {len(tasks)} tasks"
        with explained(action, private=True):
            reply = self.sdk.projects.import_tasks(
                project_id, request=[{"data": dict(task)} for task in tasks], request_options=_ONCE
            )
        if reply.task_count != len(tasks):
            raise OutcomeUnknownError(f"{action}: the server says it added {reply.task_count}")

    def import_predictions(
        self, project_id: int, predictions: Mapping[int, PredictionPayload]
    ) -> None:
        """Add one prediction to each task id. Not idempotent: look up first.

        Raises:
            OutcomeUnknownError: if the server's count is not ours.
        """
        action = f"importing {len(predictions)} predictions"
        rows = [{"task": task_id, **asdict(payload)} for task_id, payload in predictions.items()]
        with explained(action, private=True):
            reply = self.sdk.projects.import_predictions(
                project_id, request=rows, request_options=_ONCE
            )
        if reply.created != len(rows):
            raise OutcomeUnknownError(f"{action}: the server says it added {reply.created}")

    def update_data(self, task_id: int, data: Mapping[str, object]) -> None:
        """Replace what a task shows; its answers and predictions stay."""
        with explained("updating the texts of a task", private=True):
            self.sdk.tasks.update(str(task_id), data=dict(data), request_options=_ONCE)

    def set_overlap(self, task_id: int, answers: int) -> None:
        """Let a task wait for so many answers."""
        with explained("setting the overlap of a task"):
            self.sdk.tasks.update(str(task_id), overlap=answers, request_options=_ONCE)

    def uploads(self, project_id: int) -> dict[str, str]:
        """Pictures of a project by stored file name, with the address the server serves them at.

        The server lists what this token's user uploaded; others' uploads are not seen.
        """
        every = {"additional_query_parameters": {"all": "true"}}
        with explained("listing uploaded pictures"):
            files = self.sdk.files.list(project_id, request_options=every)
        return {str(file.file).rsplit("/", 1)[-1]: f"/data/{file.file}" for file in files}

    def upload(self, project_id: int, name: str, data: bytes, media_type: str) -> str:
        """Upload one picture without making a task of it; returns its address on the server."""
        action = f"uploading a picture of {len(data)} bytes"
        with explained(action):
            # The SDK has no multipart import; its own HTTP client carries the token's refresh.
            reply = self.sdk._client_wrapper.httpx_client.request(
                f"api/projects/{project_id}/import",
                method="POST",
                params={"commit_to_project": "false"},
                files={"file": (name, data, media_type)},
                request_options=_ONCE,
            )
        if reply.status_code != httpx.codes.CREATED:
            raise LabelStudioError(f"{action}: the server answered {reply.status_code}")
        with explained(action):
            file_id = reply.json()["file_upload_ids"][0]
            return f"/data/{self.sdk.files.get(file_id).file}"


def connect(settings: ServerSettings) -> StudioClient:
    """Open a client and prove that the address, the token and the server are what we think.

    Raises:
        LabelStudioError: no token, server not reached, redirected, not Label Studio, or 401.
    """
    token = os.environ.get(settings.token_env, "").strip()
    if not token:
        raise LabelStudioError(
            f"no API token: set the environment variable {settings.token_env} "
            "(Label Studio: Account & Settings, Personal Access Token)"
        )
    url = settings.url.rstrip("/")
    http = httpx.Client(
        timeout=settings.timeout_s, follow_redirects=False, auth=RenewedAccess(url, token)
    )
    try:
        _check_server(http, url)
        with explained(f"logging in at {url}"):
            sdk = LabelStudio(base_url=url, api_key=token, httpx_client=http)
            sdk.users.whoami()
    except LabelStudioError:
        http.close()
        raise
    return StudioClient(sdk, http)


def _check_server(http: httpx.Client, url: str) -> None:
    action = f"reaching Label Studio at {url}"
    with explained(action):
        reply = http.get(f"{url}/api/version")
    if reply.is_redirect:
        raise LabelStudioError(f"{action}: {redirect_hint(reply.headers.get('location', ''))}")
    with explained(action):
        product = reply.json() if reply.is_success else {}
    if "label-studio-os-package" not in product and "release" not in product:
        raise LabelStudioError(
            f"{action}: something answers there, but not Label Studio (status {reply.status_code})"
        )


def _task_ref(task: Any) -> TaskRef:  # the SDK's model has no type for its extra fields
    return TaskRef(
        task_id=int(task.id),
        sample_id=str(task.data.get("sample_id", "")),
        prediction_count=int(task.total_predictions),
        annotation_count=_count(task, "total_annotations") + _count(task, "cancelled_annotations"),
        overlap=_count(task, "overlap") or 1,
        data=dict(task.data),
    )


def _count(task: Any, name: str) -> int:
    return int(getattr(task, name, None) or 0)
