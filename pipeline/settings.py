"""From the job's configuration to what a worker needs: resolved, picklable, without secrets."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import partial

from pipeline.config import JobConfig
from pipeline.fingerprint import Ingredients, fingerprint_of
from pipeline.input_settings import box_convention, image_settings
from pipeline.model import ResolvedModel, resolve_model
from pipeline.plan import Plan, index_store
from pipeline.probe_screens import SCENE_MAKERS
from schemas.codes import QueryKind, Route
from transforms.ask import AskSettings
from transforms.commit import DatasetWriter
from transforms.compose import ComposeSettings
from transforms.engines.base import EngineFactory, EngineInfo
from transforms.engines.limits import EngineLimits
from transforms.engines.supervised import SupervisedFactory
from transforms.engines.trouble import TroubleFiles
from transforms.engines.vllm import start_vllm
from transforms.judge import JudgeSettings
from transforms.load import LoadSettings
from transforms.probe.start import CheckedFactory, StartCheck
from transforms.queries import load_queries
from transforms.route import RouteSettings
from transforms.rows import RowSettings
from transforms.storage import normalize_uri

DECODE_THREADS = 2
"""Threads that decode and resize; Pillow releases the GIL, and the engine needs the other cores."""

PREFETCH_SCREENS = 8
"""Composed screens waiting for the engine: bounds memory, hides a slow read."""


_IMAGE_KEYS = {
    "background",
    "boxes",
    "max_aspect",
    "max_bytes",
    "max_pixels",
    "max_png_chunks",
    "max_side",
    "near_distance",
    "near_duplicates",
}
"""Settings of `[input]` that decide which images are taken, how they look, what is true."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Everything `annotate_lot` needs, the same for every lot.

    Attributes:
        ingredients: what the fingerprint is made of.
        start_seconds: longest start of an engine.
        run_id: of this run alone; a process that outlives it does not keep its engine for the next.
    """

    engine_factory: EngineFactory
    writer: DatasetWriter
    load: LoadSettings
    compose: AskSettings
    judge: JudgeSettings
    model: ResolvedModel
    ingredients: Ingredients
    decode_threads: int = DECODE_THREADS
    prefetch_screens: int = PREFETCH_SCREENS
    start_seconds: float = field(default_factory=lambda: EngineLimits().start_seconds)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def row_settings(self, info: EngineInfo) -> RowSettings:
        """What every annotation row says of the model and of the engine that is running."""
        return RowSettings(
            profile=self.model.profile.name,
            model=self.model.name,
            model_revision=self.model.revision,
            model_licence=self.model.licence,
            engine=info.engine,
            engine_version=info.version,
        )


def worker_settings(
    config: JobConfig, plan: Plan, engine_factory: EngineFactory | None = None
) -> WorkerSettings:
    """Resolve the job; the model's files are looked at, the engine is not started.

    Args:
        config: the job.
        plan: its plan, for the hash of the queries file.
        engine_factory: another engine than vLLM, for tests.

    Raises:
        ConfigError: if the profile, the frame or the checkpoint cannot be settled.
    """
    model = resolve_model(config.model)
    ingredients = _ingredients(config, plan, model)
    compose = ComposeSettings(
        model=model.name,
        revision=model.revision,
        k=config.sampling.k,
        temperature=config.sampling.temperature,
        seed=config.sampling.seed,
    )
    return WorkerSettings(
        engine_factory=_supervised(config, model, engine_factory),
        writer=DatasetWriter(
            normalize_uri(config.output.dataset),
            fingerprint_of(ingredients),
            config.output.s3_endpoint,
        ),
        load=_load_settings(config, model),
        compose=AskSettings(model.profile, model.frame, compose),
        judge=JudgeSettings(model.frame, _route_settings(config)),
        model=model,
        ingredients=ingredients,
        start_seconds=config.engine.start_seconds,
    )


def _start_check(config: JobConfig, model: ResolvedModel) -> StartCheck:
    scenes = SCENE_MAKERS[model.profile.probe_screens]
    return StartCheck(model.profile, model.frame, config.model.probe, scenes)


def _supervised(
    config: JobConfig, model: ResolvedModel, factory: EngineFactory | None
) -> SupervisedFactory:
    """vLLM, or the engine of a test: checked at every start, and replaced when it dies."""
    checked = CheckedFactory(
        factory or partial(start_vllm, model.vllm),
        _start_check(config, model),
    )
    trouble = TroubleFiles(normalize_uri(config.output.dataset), config.output.s3_endpoint)
    return SupervisedFactory(checked, EngineLimits(**config.engine.model_dump()), trouble)


def _load_settings(config: JobConfig, model: ResolvedModel) -> LoadSettings:
    source = config.input
    queries = load_queries(source.queries, source.s3) if source.queries else None
    return LoadSettings(
        images=image_settings(source),
        boxes=box_convention(source),
        enumerate_elements=source.enumerate_elements,
        can_enumerate=QueryKind.LOCALIZATION in model.profile.tasks,
        queries=queries,
        s3_endpoint=source.s3,
        kept=index_store(config),
    )


def _route_settings(config: JobConfig) -> RouteSettings:
    decision = config.decision
    return RouteSettings(decision.threshold, decision.audit_share, Route(decision.unusable))


def _ingredients(config: JobConfig, plan: Plan, model: ResolvedModel) -> Ingredients:
    """Everything that shapes rows. Unit size is one: another size would cut other units."""
    return {
        "input": {
            "unit_screens": config.input.unit_screens,
            **config.input.model_dump(mode="json", include=_IMAGE_KEYS),
            "enumerate_elements": config.input.enumerate_elements,
            "queries_sha256": plan.queries_sha256,
        },
        "model": {
            "checkpoint": model.name,
            "revision": model.revision,
            "frame": model.frame.value,
        },
        "profile": model.profile.model_dump(
            mode="json", exclude={"engine", "sources", "warning", "probe_screens"}
        ),
        "sampling": config.sampling.model_dump(mode="json"),
        "decision": config.decision.model_dump(mode="json"),
    }
