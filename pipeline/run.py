"""Run the job: plan, annotate what is missing, prove the counts, push, report."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pipeline.announce import listening
from pipeline.at_work import at_work
from pipeline.attend import attend
from pipeline.claim import claim_plan
from pipeline.clean import sweep
from pipeline.config import JobConfig, LimitsConfig
from pipeline.copies import with_copies
from pipeline.dataset import Dataset, open_root
from pipeline.exits import exit_status
from pipeline.follow import Follower
from pipeline.heartbeat import Heartbeat, Phase, heartbeat_uri
from pipeline.memory import give_memory_back
from pipeline.observer import Observer
from pipeline.partition import Partition
from pipeline.plan import Plan, make_plan
from pipeline.proof import missing_units, planned_records, prove
from pipeline.report.stats import PushOutcome, RunStats, run_stats
from pipeline.report.words import count_words
from pipeline.report.write import Report, write_report
from pipeline.review_samples import REVIEWED
from pipeline.settings import WorkerSettings, worker_settings
from pipeline.stopping import interruptible, stop_signal, stoppable
from pipeline.turns import release_in_turn
from pipeline.versions import root_for_run
from schemas.commits import CommitRecord
from schemas.errors import LabelStudioError, StoppedError
from transforms.engines.base import EngineFactory
from transforms.profiles.load import load_profile
from transforms.storage import normalize_uri

log = logging.getLogger(__name__)


Push = Callable[[Dataset, JobConfig], PushOutcome]
"""Brings the review rows of a dataset to a server."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        exit_code: as in the design: 0, 1, 130 or 143; errors are raised instead.
        reason: what an exit code other than 0 means here, in words.
        report: the figures, and where the reports are.
    """

    exit_code: int
    reason: str
    dataset: str
    report: Report


@dataclass(frozen=True, slots=True)
class Ready:
    """A job that may begin: its input is listed, and its dataset is its own.

    Attributes:
        config: as it was given, but with the place of the dataset's version that is written.
        plan: the whole; `part` is what this run does of it.
        done: ids of the units that were committed before.
    """

    config: JobConfig
    plan: Plan
    part: Plan
    settings: WorkerSettings
    done: frozenset[str]
    partition: Partition | None


Workers = Callable[[Ready, Heartbeat], None]
"""Annotates what is left of a job, and tells the heartbeat; raises what ends the run."""


def run_job(
    config: JobConfig,
    beam_arguments: Sequence[str] = (),
    *,
    observer: Observer | None = None,
    push: Push | None = None,
    engine_factory: EngineFactory | None = None,
    partition: Partition | None = None,
    workers: Workers | None = None,
    new_version: bool = False,
) -> RunOutcome:
    """Run the whole job, or the rest of it: committed units are never done again.

    Long because it tells the order of a run, and its options, in one place.

    Args:
        config: the job.
        beam_arguments: flags for Beam.
        observer: told about progress.
        push: brings review rows to Label Studio; default: nothing is pushed.
        engine_factory: another engine than vLLM, for tests.
        partition: do, prove and report only this part; a run without proves and pushes the whole.
        workers: annotate in place of this process, which then proves, pushes and reports.
        new_version: other settings than those of the dataset go to a version of their own.

    Raises:
        PantallaError: wrong settings or input, early; later an engine, a store, a count.
        StoppedError: if a signal came before there was anything to report.
    """
    watch, clock = observer or Observer(), _Clock()
    with stoppable(config.run.grace_seconds):
        with interruptible("listing what there is to read"):
            watch.status("Listing what there is to read")
            _check_flags(beam_arguments)
            give_memory_back()
            ready = _prepare(config, engine_factory, partition, new_version=new_version)
        config = ready.config
        part = "" if partition is None else str(partition)
        with at_work(ready.settings.writer, "job", part), _heartbeat(config, ready, watch) as beat:
            if workers is None:
                _annotate(ready, config, beam_arguments, beat)
            else:
                workers(ready, beat)
            outcome = _conclude(ready, config, push, clock, beat)
            beat.ends_with(outcome.exit_code)
    return outcome


def _prepare(
    config: JobConfig,
    engine_factory: EngineFactory | None,
    partition: Partition | None,
    *,
    new_version: bool,
) -> Ready:
    plan = make_plan(config)
    settings = worker_settings(config, plan, engine_factory)
    output = config.output
    root = root_for_run(
        output.dataset, settings.ingredients, output.s3_endpoint, new_version=new_version
    )
    placed = config.model_copy(update={"output": output.model_copy(update={"dataset": root})})
    settings = replace(settings, writer=replace(settings.writer, uri=root))
    done = claim_plan(plan, settings)
    plan = with_copies(plan, placed, settings)
    plan = replace(plan, new_indexes=())  # they are kept by now
    return Ready(placed, plan, plan.part(partition), settings, done, partition)


def _conclude(
    ready: Ready, config: JobConfig, push: Push | None, clock: _Clock, beat: Heartbeat
) -> RunOutcome:
    """Prove that nothing is missing, push, and report; after a signal, only report."""
    partition = ready.partition
    records, pushed = planned_records(ready.part, _dataset(config), ready.done), None
    if stop_signal() is None:
        prove(ready.part, records)
        beat.enter(Phase.PUSH)
        pushed = _push(push, config, beat) if partition is None else _others(ready.plan, config)
    stats = clock.stats(records, ready.settings.model.name, pushed)
    beat.enter(Phase.REPORT)
    beat.status("Writing the report")
    dataset = _reported(config, partition, records)
    return _end(config, dataset, partition, stats, stop_signal())


def _heartbeat(config: JobConfig, ready: Ready, watch: Observer) -> Heartbeat:
    """Begins only now that the dataset is ours: a refused job leaves no trace in it."""
    own = heartbeat_uri(ready.settings.writer.uri, ready.partition)
    uri = normalize_uri(config.run.heartbeat or own)
    seconds = config.run.heartbeat_seconds
    return Heartbeat(uri, config.output.s3_endpoint, seconds, watch, ready.partition)


def _end(
    config: JobConfig,
    dataset: Dataset,
    partition: Partition | None,
    stats: RunStats,
    signal: int | None,
) -> RunOutcome:
    """Report, and say how it went; a whole run that got to its end leaves no leftovers."""
    if partition is None and signal is None:
        sweep(_dataset(config))
    report = write_report(dataset, stats, config, partition)
    # One partition may hold all the bad shards: the limit is for the whole.
    limits = config.limits if partition is None else LimitsConfig(max_reject_share=1)
    code, reason = exit_status(report.figures, stats, limits, signal)
    return RunOutcome(code, reason, config.output.dataset, report)


def _check_flags(beam_arguments: Sequence[str]) -> None:
    """Refuse unknown flags before anything is made; without flags Beam is not even imported."""
    if beam_arguments:
        from pipeline.beam_options import beam_options

        beam_options(beam_arguments)


class _Clock:
    """When the run began, by the calendar and by a clock that never jumps."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._monotonic = time.monotonic()

    def stats(
        self, records: Sequence[CommitRecord], model: str, push: PushOutcome | None
    ) -> RunStats:
        """What the run has spent until now."""
        return run_stats(
            records,
            started=self._started.isoformat(timespec="seconds"),
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            wall_seconds=time.monotonic() - self._monotonic,
            model=model,
            push=push,
        )


def _dataset(config: JobConfig) -> Dataset:
    return open_root(config.output.dataset, config.output.s3_endpoint, config.input.s3)


def _reported(
    config: JobConfig, partition: Partition | None, records: Sequence[CommitRecord]
) -> Dataset:
    """What a report is about: the whole dataset, or the units of a partition."""
    dataset = _dataset(config)
    return dataset if partition is None else dataset.only({record.unit_id for record in records})


def _annotate(
    ready: Ready, config: JobConfig, beam_arguments: Sequence[str], beat: Heartbeat
) -> None:
    """Run the graph over the lots that are not done; nothing is started when there are none."""
    plan, done = ready.part, ready.done
    lots = plan.lots(done, config.input.lot_units, spread=bool(beam_arguments))
    beat.start(plan, sum(unit.unit_id in done for unit in plan.units))
    if not lots:
        return
    from pipeline.launch import launch

    for notice in load_profile(config.model.profile).notices(config.model.checkpoint):
        log.warning("%s", notice)
    beat.status("Starting the engine")

    follower = Follower(ready.settings.writer, done, plan, beat.advance)
    # Flags may choose a runner whose workers are elsewhere; the default one is heard at once.
    pace = config.run.heartbeat_seconds if beam_arguments else None

    def work() -> None:
        try:
            with listening(follower.tell), follower.every(pace):
                launch(lots, ready.settings, beam_arguments)
        finally:
            release_in_turn()

    try:
        attend(work, config.engine.start_seconds)
    finally:
        beat.finish()


def _others(plan: Plan, config: JobConfig) -> PushOutcome:
    """What a partition says of the others; the last one to end proves the whole plan.

    Raises:
        CountMismatchError: if all units are committed, and one of them lost something.
    """
    records = planned_records(plan, _dataset(config), frozenset())
    missing = missing_units(plan, records)
    if missing:
        text = f"{count_words(missing, 'unit')} of other partitions not committed yet"
    else:
        prove(plan, records)
        text = "all partitions are done"
    return PushOutcome(note=f"{text}; `pantalla run` without --partition pushes and reports it all")


def _push(push: Push | None, config: JobConfig, watch: Observer) -> PushOutcome:
    """Push, or say what waits; a server in trouble never fails the run."""
    if push is None or config.label_studio.url is None or not config.label_studio.push:
        return PushOutcome(note="no server is configured: review rows wait for `pantalla push`")
    watch.status(f"Pushing review rows to {config.label_studio.url}")
    dataset = _dataset(config)
    try:
        with interruptible("pushing review rows"):
            return push(dataset, config)
    except (LabelStudioError, StoppedError) as error:
        log.warning("nothing more was pushed: %s", error)
        routes = dataset.describe().counts.routes
        waiting = sum(routes.get(route, 0) for route in REVIEWED)
        return PushOutcome(pending=waiting, note=str(error))
