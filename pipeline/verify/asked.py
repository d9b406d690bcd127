"""What rows say of the model and of how it was asked is what the head file says.

The head holds the whole profile and all settings that shape an answer, so the id of every sample
can be computed again from its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from schemas.codes import QueryKind
from schemas.commits import CommitRecord, DatasetHead
from schemas.geometry import FrameKind, Size
from schemas.profile import ModelProfile
from schemas.tables import SCHEMA_VERSION
from transforms.compose import Asked, ComposeSettings, id_of_sample, request_sampling

_ROW = ("sample_id", "screen_id", "query_kind", "instruction", "prompt", "seen", "sampling")


class _Checkpoint(BaseModel):
    model_config = ConfigDict(frozen=True)

    checkpoint: str
    revision: str
    frame: FrameKind


class _Sampling(BaseModel):
    model_config = ConfigDict(frozen=True)

    k: int
    temperature: float | None
    seed: int


class _Ingredients(BaseModel):
    model_config = ConfigDict(frozen=True)

    model: _Checkpoint
    profile: dict[str, JsonValue]
    sampling: _Sampling


@dataclass(frozen=True, slots=True)
class AskedAs:
    """How all samples of a dataset were asked, as its head says."""

    profile: ModelProfile
    frame: FrameKind
    settings: ComposeSettings


def asked_as(head: DatasetHead | None) -> AskedAs | None:
    """What the head says; None where it does not say all of it, or is of another schema.

    Another version of this package may have made ids in another way, and known other profiles.
    """
    if head is None or head.schema_version != SCHEMA_VERSION:
        return None
    try:
        said = _Ingredients.model_validate(head.ingredients)
        # The head leaves out what shapes no answer, and this is required.
        profile = ModelProfile.model_validate({"sources": {"head": "head"}, **said.profile})
    except ValidationError:
        return None
    settings = ComposeSettings(
        model=said.model.checkpoint,
        revision=said.model.revision,
        k=said.sampling.k,
        temperature=said.sampling.temperature,
        seed=said.sampling.seed,
    )
    return AskedAs(profile, said.model.frame, settings)


def wrong_asked(said: AskedAs, record: CommitRecord, table: pa.Table) -> Iterator[str]:
    """What rows of `annotations` say otherwise than the head, for a person."""
    if record.schema_version != SCHEMA_VERSION:
        return
    expected = {
        "profile": said.profile.name,
        "model": said.settings.model,
        "model_revision": said.settings.revision,
    }
    for name, value in expected.items():
        count = pc.sum(pc.not_equal(table[name], value)).as_py() or 0
        if count:
            yield f"{count} rows of another {name} than the head says ({value})"
    first = table.filter(pc.equal(table["element_index"], 0)).select(_ROW).to_pylist()
    known = [row for row in first if row["query_kind"] in said.profile.tasks]
    wrong = [row["sample_id"] for row in known if _computed_id(said, row) != row["sample_id"]]
    if wrong:
        some = ", ".join(wrong[:3])
        yield f"{len(wrong)} samples whose id does not follow from what was asked ({some})"
    others = sum(not _has_sampling(said, row) for row in known)
    if others:
        yield f"{others} samples with other sampling settings than the head says"


def _computed_id(said: AskedAs, row: Mapping[str, Any]) -> str:
    seen = row["seen"]
    asked = Asked(
        screen_id=row["screen_id"],
        kind=QueryKind(row["query_kind"]),
        instruction=row["instruction"],
        prompt=row["prompt"],
        shown=Size(seen["width"], seen["height"]),
    )
    return id_of_sample(asked, said.profile, said.frame, said.settings)


def _has_sampling(said: AskedAs, row: Mapping[str, Any]) -> bool:
    kind = QueryKind(row["query_kind"])
    sampling, n = request_sampling(kind, said.profile, said.settings)
    task = said.profile.tasks[kind]
    expected = {**sampling.model_dump(), "k": n, "max_tokens": task.max_tokens}
    return all(row["sampling"][name] == value for name, value in expected.items())
