"""The review project on a server: found by title or made, with its interface, guide and view."""

from __future__ import annotations

from label_studio.client import StudioClient
from label_studio.failures import explained
from label_studio.guide import guide_html
from label_studio.interface import build_config
from label_studio.tasks import MODEL_VERSION
from schemas.errors import LabelStudioError

VIEW_TITLE = "Por revisar"
DESCRIPTION = "Muestras que el modelo dejó en duda, para que una persona las revise."

_ASSETS_SUFFIX = " · imágenes"
_MAX_TITLE = 50
_ASSETS_CONFIG = '<View><Image name="image" value="$image"/></View>'
_ASSETS_DESCRIPTION = "Guarda las capturas del proyecto de revisión. No tiene tareas; no lo borre."
_UNCERTAIN_FIRST = ["tasks:predictions_score"]
# A reviewer sees the task's number, its picture, its instruction, and who did it. What would lead
# the eye (score, model) or only fills the screen is hidden; it stays in the data.
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
            "probability",
            "model",
            "app",
            "locale",
        )
    ),
]


def ensure_project(client: StudioClient, title: str) -> int:
    """Find or make the review project and bring its interface and guide up to date.

    Returns:
        The project's id.

    Raises:
        LabelStudioError: several projects have this title, or the server refuses the interface,
            for example because answers exist for a code that is gone.
    """
    project_id = _find_one(client, title)
    if project_id is None:
        project_id = _create(client, title)
    else:
        _refresh(client, project_id)
    _ensure_view(client, project_id)
    return project_id


def ensure_assets(client: StudioClient, title: str) -> int:
    """Find or make the project that keeps the pictures of the review project `title`.

    The server takes uploads only for interfaces with one variable; ours has several.
    """
    assets = title[: _MAX_TITLE - len(_ASSETS_SUFFIX)] + _ASSETS_SUFFIX
    found = _find_one(client, assets)
    if found is not None:
        return found
    with explained("making the project for pictures"):
        made = client.sdk.projects.create(
            title=assets,
            description=_ASSETS_DESCRIPTION,
            label_config=_ASSETS_CONFIG,
            request_options={"max_retries": 0},
        )
    return int(made.id)


def show_predictions(client: StudioClient, project_id: int) -> None:
    """Make the queue show our predictions; without this only the list does.

    The server sets a project's model version by itself only for predictions inside tasks, and
    refuses one that no prediction has: so this comes after the first of them.
    """
    with explained(f"reading project {project_id}"):
        project = client.sdk.projects.get(project_id)
    if project.model_version == MODEL_VERSION or not project.total_predictions_number:
        return
    with explained("choosing the predictions to show"):
        client.sdk.projects.update(
            project_id, model_version=MODEL_VERSION, request_options={"max_retries": 0}
        )


def _find_one(client: StudioClient, title: str) -> int | None:
    ids = client.project_ids(title)
    if len(ids) > 1:
        raise LabelStudioError(
            f"{len(ids)} projects are called {title!r} (ids {ids}): rename all but one"
        )
    return ids[0] if ids else None


def _create(client: StudioClient, title: str) -> int:
    with explained(f"making the project {title!r}"):
        made = client.sdk.projects.create(
            title=title,
            description=DESCRIPTION,
            label_config=build_config(),
            expert_instruction=guide_html(),
            show_instruction=True,
            sampling="Sequential sampling",
            maximum_annotations=1,
            enable_empty_annotation=True,
            show_collab_predictions=True,
            request_options={"max_retries": 0},
        )
    return int(made.id)


def _refresh(client: StudioClient, project_id: int) -> None:
    """Send the interface and the guide where they changed.

    `validate_label_config` comes first: `update` alone accepts a config that orphans answers.
    """
    config, guide = build_config(), guide_html()
    with explained(f"reading project {project_id}"):
        project = client.sdk.projects.get(project_id)
    if project.label_config != config:
        with explained("checking the interface against the answers on the server"):
            client.sdk.projects.validate_label_config(project_id, label_config=config)
        with explained("updating the interface"):
            client.sdk.projects.update(
                project_id, label_config=config, request_options={"max_retries": 0}
            )
    if project.expert_instruction != guide:
        with explained("updating the guide"):
            client.sdk.projects.update(
                project_id, expert_instruction=guide, request_options={"max_retries": 0}
            )


def _ensure_view(client: StudioClient, project_id: int) -> None:
    """A tab that shows the least certain samples first; with sequential sampling it is the queue.

    `Uncertainty sampling` would serve only people who press one of two buttons.
    """
    with explained("listing views"):
        views = list(client.sdk.views.list(project=project_id))
    if any(view.data.title == VIEW_TITLE for view in views if not isinstance(view.data, dict)):
        return
    if any(view.data.get("title") == VIEW_TITLE for view in views if isinstance(view.data, dict)):
        return
    data = {
        "title": VIEW_TITLE,
        "type": "list",
        "target": "tasks",
        "ordering": _UNCERTAIN_FIRST,
        "hiddenColumns": {"explore": _HIDDEN, "labeling": _HIDDEN},
    }
    with explained("making the view"):
        client.sdk.views.create(project=project_id, data=data, request_options={"max_retries": 0})
