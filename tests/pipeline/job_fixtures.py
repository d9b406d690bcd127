"""Small datasets and scripted engines for tests of the whole job."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from PIL import Image, ImageDraw

from pipeline.config import (
    DecisionConfig,
    EngineConfig,
    InputConfig,
    JobConfig,
    ModelConfig,
    OutputConfig,
    SamplingConfig,
)
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest
from transforms.engines.scripted import ScriptedEngine, ScriptedLatency


@dataclass(frozen=True)
class Shot:
    """One picture to make: its true boxes are drawn, asked for and kept as truth."""

    name: str
    size: tuple[int, int] = (320, 240)
    targets: Mapping[str, tuple[int, int, int, int] | None] = field(default_factory=dict)


def png(shot: Shot) -> bytes:
    image = Image.new("RGB", shot.size, "white")
    draw = ImageDraw.Draw(image)
    draw.text((4, 4), shot.name, "black")
    for box in shot.targets.values():
        if box is not None:
            draw.rectangle(box, fill="navy")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def sidecar(shot: Shot) -> bytes:
    queries = [
        {"instruction": text, "target": None if box is None else i, "bbox_px": box}
        for i, (text, box) in enumerate(shot.targets.items())
    ]
    document = {"app": "prueba", "licence": "CC0-1.0", "locale": "es-AR", "queries": queries}
    return json.dumps(document, ensure_ascii=False).encode()


def write_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_shard(path: Path, shots: Sequence[Shot]) -> Path:
    files: dict[str, bytes] = {}
    for shot in shots:
        files[f"{shot.name}.png"] = png(shot)
        files[f"{shot.name}.json"] = sidecar(shot)
    return write_tar(path, files)


def shots(count: int, prefix: str = "pantalla") -> list[Shot]:
    """`count` pictures, each with a button, a field and a target that is not there."""
    return [
        Shot(
            f"{prefix}-{i:03d}",
            (320 + 32 * (i % 3), 240),
            {
                f"Presioná «Guardar {prefix} {i}»": (40, 40, 120, 70),
                f"Completá el campo {prefix} {i}": (40, 100, 220, 130),
                f"Abrí la papelera {prefix} {i}": None,
            },
        )
        for i in range(count)
    ]


@dataclass(frozen=True)
class Oracle:
    """Answers like a model that knows every target, in the 0-1000 frame of its family.

    Attributes:
        wrong: instructions it answers with nonsense instead.
    """

    targets: Mapping[str, tuple[tuple[int, int, int, int] | None, tuple[int, int]]]
    wrong: frozenset[str] = frozenset()

    def __call__(self, request: EngineRequest) -> Answer:
        text = self._text(request)
        completions = tuple(Completion(text, "stop", 9) for _ in range(request.n))
        return Answer(request.request_id, completions, prompt_tokens=100)

    def _text(self, request: EngineRequest) -> str:
        instruction = next((key for key in self.targets if key in request.prompt), None)
        if instruction is None or instruction in self.wrong:
            return "no sé qué decir"
        box, (width, height) = self.targets[instruction]
        if box is None:
            return "[]"
        scaled = [round(v * 1000 / side) for v, side in zip(box, (width, height) * 2, strict=True)]
        return json.dumps([{"bbox_2d": scaled, "label": "button"}])


def oracle(known: Sequence[Shot], wrong: frozenset[str] = frozenset()) -> Oracle:
    targets = {text: (box, shot.size) for shot in known for text, box in shot.targets.items()}
    return Oracle(targets, wrong)


def scripted(
    answers: Oracle, *, fail_after: int | None = None, room: int = 6
) -> partial[ScriptedEngine]:
    latency = ScriptedLatency(hold=1, per_collect=3, fail_after=fail_after)
    return partial(ScriptedEngine, answers, latency, room)


def job(tmp_path: Path, *shards: Path, **changes: object) -> JobConfig:
    """A job over `shards` with small units, so that there is more than one.

    An engine that dies ends it, unless a test changes `engine`.
    """
    config = JobConfig(
        input=InputConfig(shards=tuple(map(str, shards)), unit_screens=2, lot_units=2),
        output=OutputConfig(dataset=str(tmp_path / "dataset")),
        model=ModelConfig(profile="nano", probe="off"),  # scripted answers know no other screens
        sampling=SamplingConfig(k=3),
        decision=DecisionConfig(threshold=0.7, audit_share=0.2),
        engine=EngineConfig(max_rebuilds=0),
    )
    return config.model_copy(update=changes)
