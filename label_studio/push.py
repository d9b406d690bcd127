"""Push review samples: each becomes one task with one prediction, however often this is called.

The server has no unique key and no upsert, reuses task ids on SQLite, answers 201 to imports whose
predictions it lost, and commits requests whose answer never arrived. So nothing is believed: what
exists is looked up by `sample_id`, only what is missing is sent, once, and the report is made from
a last look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from label_studio.checks import prediction_problems, task_problems
from label_studio.client import ServerSettings, StudioClient, connect
from label_studio.images import ImageOf, Places, ScreenImages
from label_studio.project import ReviewProject, ensure_project, show_predictions
from label_studio.pushing import BATCH, Overlap, PushFailure, Pushing, batches
from label_studio.storages import ServedImages, Storages
from label_studio.tasks import prediction, task_data
from label_studio.words import Variant
from schemas.errors import LabelStudioError
from schemas.ids import content_id
from schemas.review import ReviewSample

__all__ = ["BATCH", "Overlap", "PushFailure", "PushPlan", "PushReport", "push_samples"]

Progress = Callable[[int], None]
"""Called with the number of samples just dealt with."""


@dataclass(frozen=True, slots=True)
class PushPlan:
    """What a push does beside bringing samples over.

    Attributes:
        variant: whose Spanish the reviewers read.
        budget: most open tasks on the server; what is beyond waits for a later push. None: all.
        overlap: tasks that several people answer.
        served: how the server reaches pictures by itself, or None: all are uploaded.
        places: where the pictures are; default: uploaded as `image_of` gives them.
        still_ours: called before every write; raises when another push has taken over.
    """

    variant: Variant = Variant.NEUTRAL
    budget: int | None = None
    overlap: Overlap = field(default_factory=Overlap)
    served: ServedImages | None = None
    places: Places | None = None
    still_ours: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did; `wanted` = `existing` + `added` + `waiting` + failed before a task existed.

    Attributes:
        wanted: different samples that were to be on the server.
        existing: of these, how many had a task before.
        added: tasks made.
        waiting: not sent, since the reviewers have as many open tasks as they are to have.
        repaired: tasks that existed without a prediction and got one.
        refreshed: tasks whose texts or picture were brought up to date.
        uploaded: pictures sent.
        duplicates: sample ids with more than one task; nothing is deleted for that.
        notes: what a person had changed on the server, and what was done about it.
    """

    project_id: int
    project_url: str
    wanted: int
    existing: int
    added: int
    repaired: int
    uploaded: int
    waiting: int = 0
    refreshed: int = 0
    failed: tuple[PushFailure, ...] = ()
    duplicates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every wanted sample has its task and its prediction."""
        return not self.failed and not self.waiting


def push_samples(
    samples: Sequence[ReviewSample],
    image_of: ImageOf,
    server: ServerSettings,
    *,
    plan: PushPlan | None = None,
    lock_dir: Path | None = None,
    progress: Progress | None = None,
) -> PushReport:
    """Bring `samples` to the review project, in their order; a repeated call adds nothing.

    Args:
        samples: most informative first; of several with one `sample_id` the first counts.
        image_of: screen id to the bytes of its picture.
        server: where to push.
        plan: what else is wanted.
        lock_dir: where the lock of this server and project lies; default: the user's cache.
        progress: told as samples are dealt with.

    Raises:
        LabelStudioError: the server cannot be used at all, or another push is running. What was
            sent until then is found by the next push.
    """
    plan = plan or PushPlan()
    wanted, failed = _checked(samples, plan.variant)
    client = connect(server)
    try:
        with _only_pusher(server, lock_dir):
            plan.still_ours()
            project = ensure_project(client, server.project, plan.variant)
            storages = _storages(client, project.project_id, plan)
            images = ScreenImages(project.assets, image_of, plan.places, storages)
            pushing = _pushing(client, project, images, server, plan, failed)
            report = _run(pushing, wanted, project, server.url, plan, progress or _silent)
            return _with_notes(report, storages)
    finally:
        client.close()


def _pushing(
    client: StudioClient,
    project: ReviewProject,
    images: ScreenImages,
    server: ServerSettings,
    plan: PushPlan,
    failed: list[PushFailure],
) -> Pushing:
    return Pushing(
        client=client,
        project_id=project.project_id,
        images=images,
        settle_waits_s=server.settle_waits_s,
        variant=plan.variant,
        overlap=plan.overlap,
        still_ours=plan.still_ours,
        failed=failed,
    )


def _run(
    pushing: Pushing,
    wanted: list[ReviewSample],
    project: ReviewProject,
    url: str,
    plan: PushPlan,
    progress: Progress,
) -> PushReport:
    pushing.look(wanted)
    before = set(pushing.refs)
    bare_before = {key for key in before if not pushing.has_prediction(key)}
    rejected = len(pushing.failed)
    progress(len(before))
    missing = [sample for sample in wanted if sample.sample_id not in before]
    sent, waiting = _send(pushing, missing, plan.budget, project.open_tasks, progress)
    there = [sample for sample in wanted if sample.sample_id in before]
    pushing.tend(there)
    if sent:
        pushing.look(sent)  # a 2xx is no proof, and one look tells of all that was sent
    pushing.repair([*there, *sent])
    show_predictions(pushing.client, pushing.project_id)
    return PushReport(
        project_id=pushing.project_id,
        project_url=f"{url.rstrip('/')}/projects/{pushing.project_id}/data",
        wanted=len(wanted) + rejected,
        existing=len(before),
        added=len(pushing.refs.keys() - before),
        waiting=len(waiting),
        repaired=sum(pushing.has_prediction(key) for key in bare_before),
        refreshed=pushing.refreshed,
        uploaded=pushing.images.uploaded,
        failed=tuple(pushing.final_failures([*there, *sent])),
        duplicates=tuple(sorted(key for key, refs in pushing.refs.items() if len(refs) > 1)),
        notes=project.notes,
    )


def _send(
    pushing: Pushing,
    missing: Sequence[ReviewSample],
    budget: int | None,
    open_tasks: int,
    progress: Progress,
) -> tuple[list[ReviewSample], list[ReviewSample]]:
    """Send what the budget has room for; gives what was tried, and what waits.

    The place of a sample that cannot become a task goes to the next one: else a few lost pictures
    at the head of the queue would take all places, at every push.
    """
    sent: list[ReviewSample] = []
    turn, waiting = within_budget(missing, budget, open_tasks)
    while turn:
        for batch in batches(turn):
            pushing.add(batch)
            progress(len(batch))
        sent += turn
        free = pushing.hopeless(turn)
        turn, waiting = waiting[:free], waiting[free:]
    return sent, waiting


def within_budget(
    missing: Sequence[ReviewSample], budget: int | None, open_tasks: int
) -> tuple[list[ReviewSample], list[ReviewSample]]:
    """What may be sent now, and what waits: the first ones, until `budget` tasks are open.

    Args:
        missing: samples without a task, most informative first.
        budget: most open tasks; None: no limit.
        open_tasks: tasks of the project that still wait for an answer.
    """
    if budget is None:
        return list(missing), []
    room = max(0, budget - open_tasks)
    return list(missing[:room]), list(missing[room:])


def _with_notes(report: PushReport, storages: Storages | None) -> PushReport:
    return replace(report, notes=(*report.notes, *storages.notes)) if storages else report


def _storages(client: StudioClient, project_id: int, plan: PushPlan) -> Storages | None:
    return Storages(client, project_id, plan.served) if plan.served else None


def _silent(count: int) -> None:
    """Nobody is told."""


def _checked(
    samples: Sequence[ReviewSample], variant: Variant
) -> tuple[list[ReviewSample], list[PushFailure]]:
    """The samples that may be sent, each id once, and what is wrong with the others."""
    unique = {sample.sample_id: sample for sample in reversed(samples)}
    ordered = [unique.pop(sample.sample_id) for sample in samples if sample.sample_id in unique]
    good, failed = [], []
    for sample in ordered:
        problems = task_problems(task_data(sample, "/data/upload/check", variant))
        problems += prediction_problems(prediction(sample))
        if problems:
            failed.append(PushFailure(sample.sample_id, "invalid", "; ".join(problems)))
        else:
            good.append(sample)
    return good, failed


@contextmanager
def _only_pusher(server: ServerSettings, lock_dir: Path | None) -> Iterator[None]:
    """Hold the lock of this server and project: two pushers doubled every task when measured."""
    folder = lock_dir or user_cache_path("pantalla") / "push-locks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{content_id([server.url.rstrip('/'), server.project])}.lock"
    try:
        with FileLock(path, timeout=0):
            yield
    except Timeout:
        raise LabelStudioError(
            f"another push to {server.project!r} is running; try again when it is done ({path})"
        ) from None
