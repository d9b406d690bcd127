"""The review project on a server: found or made, and compared with what it should be.

What a person changed there is named. What is ours is put back where that loses nobody's work: an
edited guide stays, and an interface that would orphan answers is refused, unless the one that is
there reads the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from label_studio.assets import (
    Assets,
    belongs_to,
    find_assets,
    find_one,
    make_assets,
    review_project_of,
)
from label_studio.client import StudioClient
from label_studio.failures import RequestGoneError, RequestRefusedError, explained
from label_studio.guide import guide_html, is_untouched
from label_studio.interface import (
    build_config,
    controls_of,
    is_untouched_config,
    reads_the_same,
)
from label_studio.tasks import MODEL_VERSION
from label_studio.view import ensure_view
from label_studio.words import Variant
from schemas.errors import LabelStudioError

DESCRIPTION = "Muestras que el modelo dejó en duda, para que una persona las revise."

OWNED: dict[str, object] = {
    "sampling": "Sequential sampling",
    "show_instruction": True,
    "show_collab_predictions": True,
    "enable_empty_annotation": True,
    "show_skip_button": True,
    "reveal_preannotations_interactively": False,
}
"""Settings a push puts back: without them reviewers see no prelabels, or in another order."""

LEFT: dict[str, object] = {"maximum_annotations": 1, "overlap_cohort_percentage": 100}
"""Settings that are only named: putting them back would reopen or close tasks of reviewers.

One answer is enough for a task of the project; tasks drawn for a second one say so themselves.
"""
_ONCE = {"max_retries": 0}


@dataclass(frozen=True, slots=True)
class ReviewProject:
    """The project as it is after the check.

    Attributes:
        assets: its pictures on the server.
        open_tasks: tasks that still wait for an answer.
        notes: what was found changed and what was done about it, for a person.
    """

    project_id: int
    assets: Assets
    open_tasks: int = 0
    notes: tuple[str, ...] = ()


def ensure_project(
    client: StudioClient, title: str, variant: Variant = Variant.NEUTRAL
) -> ReviewProject:
    """Find or make the review project and compare its interface, guide, settings and view.

    Raises:
        LabelStudioError: several projects have this title, or the server refuses the interface,
            for example because answers exist for a code that is gone.
    """
    project_id, assets_id = find_one(client, title), find_assets(client, title)
    notes: list[str] = []
    if project_id is None and assets_id is not None:
        project_id, notes = _renamed(client, assets_id, title)
    if project_id is None:
        project_id = _create(client, title, variant)
    assets = Assets(client, assets_id or make_assets(client, title))
    belongs_to(client, assets.project_id, project_id)
    check = _Check(client, project_id, guide_html(variant, assets.guide_picture), variant, notes)
    open_tasks = check.run()
    notes += ensure_view(client, project_id)
    return ReviewProject(project_id, assets, open_tasks, tuple(notes))


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
        client.sdk.projects.update(project_id, model_version=MODEL_VERSION, request_options=_ONCE)


def _renamed(client: StudioClient, assets_id: int, title: str) -> tuple[int | None, list[str]]:
    """The project our pictures belong to, where it exists under another title."""
    known = review_project_of(client, assets_id)
    if known is None:
        return None, []
    try:
        with explained(f"reading project {known}"):
            found = client.sdk.projects.get(known)
    except RequestGoneError:
        return None, []
    return known, [f"the project is called {found.title!r} on the server, not {title!r}"]


def _create(client: StudioClient, title: str, variant: Variant) -> int:
    with explained(f"making the project {title!r}"):
        made = client.sdk.projects.create(
            title=title,
            description=DESCRIPTION,
            label_config=build_config(variant),
            sampling="Sequential sampling",
            show_instruction=True,
            show_collab_predictions=True,
            enable_empty_annotation=True,
            show_skip_button=True,
            maximum_annotations=1,
            request_options=_ONCE,
        )
    return int(made.id)


@dataclass
class _Check:
    """One comparison of a project with what it should be."""

    client: StudioClient
    project_id: int
    guide: str
    variant: Variant
    notes: list[str]

    def run(self) -> int:
        """Compare everything; returns how many tasks are open."""
        with explained(f"reading project {self.project_id}"):
            project = self.client.sdk.projects.get(self.project_id)
        self._interface(project.label_config or "")
        self._guide(project.expert_instruction or "")
        self._settings(project)
        return int(project.task_number or 0) - int(project.finished_task_number or 0)

    def _interface(self, found: str) -> None:
        """`validate_label_config` comes first: `update` alone accepts one that orphans answers."""
        config = build_config(self.variant)
        if found == config:
            return
        try:
            with explained("checking the interface against the answers on the server"):
                self.client.sdk.projects.validate_label_config(self.project_id, label_config=config)
        except LabelStudioError as error:
            if isinstance(error, RequestRefusedError) and reads_the_same(found):
                self.notes.append(
                    "the interface on the server has other texts or another look and was left so: "
                    f"{error}"
                )
                return
            raise LabelStudioError(
                f"{error}. The interface on the server is another ({_difference(found, config)}) "
                "and was left as it is. Give label_studio.project a new title to go on in a "
                "project of its own, or delete those answers"
            ) from None
        self._update("updating the interface", label_config=config)
        if not is_untouched_config(found):
            self.notes.append(
                f"the interface had been changed on the server ({_difference(found, config)}): "
                "it was put back"
            )

    def _guide(self, found: str) -> None:
        if found == self.guide:
            return
        if found and not is_untouched(found):
            self.notes.append(
                "the guide was edited on the server and was left so; empty it there, and the next "
                "push writes ours"
            )
            return
        self._update("updating the guide", expert_instruction=self.guide)

    def _settings(self, project: Any) -> None:
        # A setting the server does not tell is none it has.
        told = {name: getattr(project, name, None) for name in (*OWNED, *LEFT)}
        changed = {n: v for n, v in OWNED.items() if told[n] is not None and told[n] != v}
        if changed:
            self._update("putting settings back", **changed)
        self.notes += [
            f"{name} was {told[name]!r} on the server: put back to {value!r}"
            for name, value in changed.items()
        ]
        self.notes += [
            f"{name} is {told[name]!r} on the server, not {value!r}: left as it is"
            for name, value in LEFT.items()
            if told[name] is not None and told[name] != value
        ]
        if project.model_version not in (None, "", MODEL_VERSION):
            self.notes.append(
                f"model_version was {project.model_version!r} on the server: put back to "
                f"{MODEL_VERSION!r}"
            )

    def _update(self, action: str, **settings: Any) -> None:
        with explained(action):
            self.client.sdk.projects.update(self.project_id, **settings, request_options=_ONCE)


def _difference(found: str, wanted: str) -> str:
    """What a person would call the difference of two interfaces: codes first, else its look."""
    here, ours = controls_of(found), controls_of(wanted)
    parts = [f"no control {name!r}" for name in sorted(ours.keys() - here.keys())]
    parts += [f"a control {name!r} of its own" for name in sorted(here.keys() - ours.keys())]
    for name in sorted(here.keys() & ours.keys()):
        parts += [f"no {c!r} in {name!r}" for c in sorted(ours[name] - here[name])]
        parts += [f"{c!r} in {name!r}" for c in sorted(here[name] - ours[name])]
    shown = parts[:5] + (["..."] if len(parts) > len(parts[:5]) else [])
    return ", ".join(re.sub(r"\s+", " ", part) for part in shown) or "its texts or its look"
