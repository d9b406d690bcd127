"""The tab that is the reviewers' queue: most informative first, nothing that leads the eye."""

from __future__ import annotations

from typing import Any

from label_studio.client import StudioClient
from label_studio.failures import explained

VIEW_TITLE = "Por revisar"
ORDERING = ("-tasks:data.priority",)
"""What a review would teach most first; ties in the order of import, which is the same."""

# A reviewer sees the task's number, its picture, its instruction, and who did it. What would lead
# the eye (model, order) or only fills the screen is hidden; it stays in the data.
_HIDDEN = [
    *(
        f"tasks:{column}"
        for column in (
            "inner_id",
            "cancelled_annotations",
            "total_predictions",
            "annotations_results",
            "annotations_ids",
            "predictions_score",
            "predictions_results",
            "predictions_model_versions",
            "file_upload",
            "storage_filename",
            "created_at",
            "updated_at",
            "updated_by",
            "avg_lead_time",
            "draft_exists",
        )
    ),
    *(
        f"tasks:data.{key}"
        for key in (
            "sample_id",
            "screen_id",
            "question",
            "answer",
            "kind",
            "status",
            "priority",
            "model",
            "app",
            "locale",
        )
    ),
]


def ensure_view(client: StudioClient, project_id: int) -> list[str]:
    """Make the tab, or put its order back; with sequential sampling it is the queue.

    `Uncertainty sampling` would serve only people who press one of two buttons.

    Returns:
        What was found changed, for a person.
    """
    with explained("listing views"):
        views = list(client.sdk.views.list(project=project_id))
    found = next((view for view in views if _data(view).get("title") == VIEW_TITLE), None)
    if found is None:
        with explained("making the view"):
            client.sdk.views.create(
                project=project_id, data=_wanted(), request_options={"max_retries": 0}
            )
        return []
    return _put_back(client, project_id, found)


def _put_back(client: StudioClient, project_id: int, view: Any) -> list[str]:
    data = _data(view)
    notes = []
    filters = data.get("filters")
    if isinstance(filters, dict) and filters.get("items"):
        notes.append(f"the view {VIEW_TITLE!r} has a filter: reviewers see only part of the queue")
    if data.get("ordering") != list(ORDERING):
        with explained("putting the view's order back"):
            client.sdk.views.update(
                str(view.id),
                project=project_id,
                data={**data, "ordering": list(ORDERING)},
                request_options={"max_retries": 0},
            )
        notes.append(f"the view {VIEW_TITLE!r} was sorted otherwise: its order was put back")
    return notes


def _wanted() -> dict[str, object]:
    return {
        "title": VIEW_TITLE,
        "type": "list",
        "target": "tasks",
        "ordering": list(ORDERING),
        "hiddenColumns": {"explore": _HIDDEN, "labeling": _HIDDEN},
    }


def _data(view: Any) -> dict[str, Any]:  # the SDK gives a model or a plain mapping, by version
    data = view.data
    return dict(data) if isinstance(data, dict) else dict(data.model_dump(exclude_none=True))
