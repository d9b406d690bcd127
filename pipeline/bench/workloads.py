"""What a benchmark asks: drawn screens in a tar, with as many questions as the workload wants."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from pipeline.config import JobConfig
from pipeline.probe_screens import SCENE_MAKERS
from schemas.codes import QueryKind
from schemas.errors import ConfigError
from schemas.profile import ModelProfile, ProbeScreens
from transforms.probe.scene import Extent, Scene
from transforms.profiles.load import load_profile

ANEW = "Otra vez: "
"""Makes another question of one that was asked already, so that no two of a screen are the same."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One way to use a model.

    Attributes:
        queries: grounding queries a screen; 0 asks for the list of all elements instead.
        k: answers of each query.
    """

    name: str
    queries: int
    k: int = 1


WORKLOADS = (
    Workload("one", 1),
    Workload("eight", 8),
    Workload("votes", 1, k=8),
    Workload("listing", 0),
)
"""One query a screen; eight; one with eight samples; long lists of mixed length."""

AGENTS = Workload("agents", 1)
"""Several screens and a long text in each request, see `pipeline.bench.agents`. Only by name: the
job asks about one screen at a time, and the engine needs other arguments for it."""


def suitable(profile: ModelProfile, names: tuple[str, ...]) -> tuple[Workload, ...]:
    """The workloads of these names, all if there are none, that the profile can be asked.

    Raises:
        ConfigError: if there is no such workload, or the profile can do none of them.
    """
    known = {workload.name: workload for workload in (*WORKLOADS, AGENTS)}
    for name in names:
        if name not in known:
            raise ConfigError(f"--workload {name}: no such workload; choose of {', '.join(known)}")
    wanted = [known[name] for name in dict.fromkeys(names)] or list(WORKLOADS)
    can_list = QueryKind.LOCALIZATION in profile.tasks
    found = tuple(one for one in wanted if one.queries or can_list)
    if not found:
        raise ConfigError(f"profile {profile.name!r} cannot list elements: choose other workloads")
    return found


def workload_job(config: JobConfig, workload: Workload, screens: int, folder: Path) -> JobConfig:
    """A job of its own for a workload: its shard is written into `folder`.

    Args:
        config: model, engine and sampling are taken from it.
        workload: what is asked.
        screens: how many.
        folder: for the shard; the dataset's place is left to the caller.
    """
    shard = folder / f"{workload.name}.tar"
    family = load_profile(config.model.profile).probe_screens
    shard.write_bytes(screens_tar(islice(scenes(family), screens), workload))
    changed = config.model_dump(mode="json", exclude={"input", "label_studio"})
    changed["input"] = {
        "shards": [str(shard)],
        "enumerate_elements": "never" if workload.queries else "always",
        "unit_screens": config.input.unit_screens,
    }
    changed["sampling"]["k"] = workload.k
    changed["model"]["probe"] = "off"  # asked once, before the first round
    return JobConfig.model_validate(changed)


def scenes(family: ProbeScreens) -> Iterator[Scene]:
    """The screens of one probe after another: each as the profile's own probe draws them."""
    for seed in count():
        yield from SCENE_MAKERS[family](Extent.FULL, seed)


def screens_tar(scenes: Iterator[Scene], workload: Workload) -> bytes:
    """A WebDataset tar of drawn screens with the questions of a workload beside each."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number, scene in enumerate(scenes):
            for suffix, data in (("png", _png(scene)), ("json", _sidecar(scene, workload))):
                member = tarfile.TarInfo(f"screen-{number:05d}.{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _png(scene: Scene) -> bytes:
    buffer = io.BytesIO()
    scene.image.save(buffer, "PNG")
    return buffer.getvalue()


def _sidecar(scene: Scene, workload: Workload) -> bytes:
    targets, queries = scene.targets, []
    for place in range(workload.queries):
        around, which = divmod(place, len(targets))
        queries.append({"instruction": ANEW * around + targets[which].instruction})
    return json.dumps({"locale": "es", "queries": queries}, ensure_ascii=False).encode()
