"""Datasets written by hand, through the real writer, for tests of what people look at."""

import io
import json
import tarfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from pipeline.dataset import Dataset, open_dataset
from pipeline.fingerprint import claim_dataset, fingerprint_of
from pipeline.report.stats import RunStats, run_stats
from schemas.commits import CommitRecord, UnitCounts, WorkerStats
from schemas.ids import sha256_hex
from schemas.records import Unit
from transforms.commit import DatasetWriter
from transforms.rows import to_table
from transforms.shards import index_shard, list_shards, split_units

INGREDIENTS = {"model": {"checkpoint": "prueba"}}


@dataclass(frozen=True)
class Ask:
    """One stored sample: only what a test cares about."""

    instruction: str
    route: str = "review"
    status: str = "ok"
    point: tuple[float, float] | None = None
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    probability: float = 0.4
    kind: str = "grounding"
    answers: tuple[str, ...] = ("[]",)
    truth: tuple[tuple[float, float, float, float], ...] | None = None
    hit: bool | None = None
    label: str | None = None


@dataclass(frozen=True)
class Stored:
    """One stored screen with its samples."""

    name: str
    asks: tuple[Ask, ...] = ()
    size: tuple[int, int] = (320, 240)
    app: str | None = "prueba"
    title: str | None = "Página de prueba"
    colour: tuple[int, int, int] = (250, 250, 250)
    data: bytes | None = None
    rejects: tuple[tuple[str, str], ...] = field(default=())

    @property
    def bytes(self) -> bytes:
        return self.data or png_bytes(self.size, self.colour)


def png_bytes(size: tuple[int, int], colour: tuple[int, int, int]) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", size, colour).save(sink, "PNG")
    return sink.getvalue()


def make_stored(folder: Path, screens: Sequence[Stored], unit_screens: int = 2) -> Dataset:
    """Write a tar of the screens and a dataset that says what was asked of them."""
    uri = str(folder / "dataset")
    claim_dataset(uri, INGREDIENTS, None)
    shard = _tar(folder / "capturas.tar", screens)
    writer = DatasetWriter(uri, fingerprint_of(INGREDIENTS))
    known = {f"{screen.name}.png": screen for screen in screens}
    for unit in plan_units(shard, unit_screens):
        commit_stored(writer, unit, known)
    return open_dataset(uri)


def plan_units(shard: Path, unit_screens: int) -> list[Unit]:
    found = [
        unit
        for listed in list_shards([str(shard)], None)
        for unit in split_units(listed, index_shard(listed, None), unit_screens)
    ]
    return [unit for unit in found if unit.members]


def commit_stored(writer: DatasetWriter, unit: Unit, known: dict[str, Stored]) -> CommitRecord:
    annotations, screens, rejects = [], [], []
    counts = {"screens": 0, "queries": 0, "samples": 0}
    statuses: Counter[str] = Counter()
    routes: Counter[str] = Counter()
    judged = hits = 0
    for member in unit.members:
        screen = known[member.name]
        screens.append(_screen_row(unit, member.image.offset, screen))
        for index, ask in enumerate(screen.asks):
            annotations += _sample_rows(unit, screen, index, ask)
            statuses[ask.status] += 1
            routes[ask.route] += 1
            judged += ask.hit is not None
            hits += ask.hit is True
        rejects += [_reject_row(unit, member.name, *entry) for entry in screen.rejects]
        counts["screens"] += 1
        counts["queries"] += len(screen.asks)
    tables = {"annotations": annotations, "screens": screens, "rejects": rejects}
    return writer.commit(
        unit,
        {name: to_table(name, rows) for name, rows in tables.items()},
        UnitCounts(
            members=counts["screens"],
            screens=counts["screens"],
            queries=counts["queries"],
            samples=counts["queries"],
            notices=len(rejects),
            annotation_rows=len(annotations),
            prompt_tokens=100 * counts["queries"],
            output_tokens=10 * counts["queries"],
            truth_judged=judged,
            truth_hits=hits,
            statuses=dict(statuses),
            routes=dict(routes),
            rejects=dict(Counter(row["reason"] for row in rejects)),
        ),
        WorkerStats(
            engine="prueba",
            engine_version="1.0",
            pid=7,
            seconds=2.0,
            engine_busy_seconds=2.0,
            engine_step_seconds=1.5,
            cached_tokens=50,
            peak_memory_bytes=3 * 2**30,
        ),
    )


def stored_stats(dataset: Dataset, wall_seconds: float = 10.0) -> RunStats:
    return run_stats(
        dataset.commits(),
        started="2026-12-01T08:00:00+00:00",
        ended="2026-12-01T08:00:10+00:00",
        wall_seconds=wall_seconds,
        model="prueba",
    )


def sample_id(screen: str, index: int) -> str:
    return sha256_hex(f"{screen}:{index}".encode())[:32]


def _tar(path: Path, screens: Sequence[Stored]) -> Path:
    with tarfile.open(path, "w") as archive:
        for screen in screens:
            for suffix, data in (("png", screen.bytes), ("json", json.dumps({}).encode())):
                info = tarfile.TarInfo(f"{screen.name}.{suffix}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return path


def _screen_row(unit: Unit, offset: int | None, screen: Stored) -> dict:
    return {
        "screen_id": sha256_hex(screen.bytes),
        "unit_id": unit.unit_id,
        "shard": unit.shard.uri,
        "shard_kind": unit.shard.kind.value,
        "member": f"{screen.name}.png",
        "byte_offset": offset,
        "row": None,
        "byte_size": len(screen.bytes),
        "image_format": "PNG",
        "image_mode": "RGB",
        "width": screen.size[0],
        "height": screen.size[1],
        "orientation": 1,
        "query_count": len(screen.asks),
        "flags": [],
        "app": screen.app,
        "licence": "BSD-3-Clause",
        "locale": "es-AR",
        "page_title": screen.title,
        "color_scheme": "light",
    }


def _reject_row(unit: Unit, member: str, reason: str, detail: str) -> dict:
    return {
        "unit_id": unit.unit_id,
        "shard": unit.shard.uri,
        "member": member,
        "stage": "read",
        "reason": reason,
        "detail": detail,
    }


def _sample_rows(unit: Unit, screen: Stored, index: int, ask: Ask) -> list[dict]:
    base = {
        "sample_id": sample_id(screen.name, index),
        "element_count": len(ask.boxes) or int(ask.point is not None),
        "screen_id": sha256_hex(screen.bytes),
        "unit_id": unit.unit_id,
        "shard": unit.shard.uri,
        "member": f"{screen.name}.png",
        "query_kind": ask.kind,
        "query_index": index,
        "query_origin": "sidecar",
        "instruction": ask.instruction,
        "locale": "es-AR",
        "status": ask.status,
        "flags": [],
        "route": ask.route,
        "probability": ask.probability,
        "probability_source": "agreement_uncalibrated",
        "signals": {"agreement": 0.6, "dispersion": 0.3, "regions": 2, "usable": 3, "total": 3},
        "frame": "original_px",
        "image_width": screen.size[0],
        "image_height": screen.size[1],
        "seen": _seen(screen.size),
        "prompt": f"Localizá: {ask.instruction}",
        "prompt_version": "1",
        "profile": "nano",
        "model": "prueba",
        "model_revision": "r1",
        "model_licence": "Apache-2.0",
        "engine": "prueba",
        "engine_version": "1.0",
        "sampling": _sampling(len(ask.answers)),
        "structured_output": False,
        "prompt_tokens": 100,
        "output_tokens": 10,
        "image_licence": "BSD-3-Clause",
        "truth_hit": ask.hit,
    }
    rows = []
    for element, box in enumerate(ask.boxes or (None,)):
        row = dict(base, element_index=element, label=ask.label, role="button" if box else None)
        row.update(zip(("x1", "y1", "x2", "y2"), box, strict=True) if box else ())
        row.update(zip(("x", "y"), ask.point, strict=True) if ask.point and element == 0 else ())
        if element == 0:
            row["answers"] = [_answer(text) for text in ask.answers]
            row["candidates"] = _candidates(ask)
            row["truth"] = _truth(ask)
        rows.append(row)
    return rows


def _answer(text: str) -> dict:
    return {"text": text, "finish_reason": "stop", "tokens": 10}


def _candidates(ask: Ask) -> list[dict]:
    if ask.point is None:
        return []
    return [
        {"sample": i, "status": "ok", "x": ask.point[0] + 9 * i, "y": ask.point[1], "flags": []}
        for i in range(len(ask.answers))
    ]


def _truth(ask: Ask) -> dict | None:
    if ask.truth is None:
        return None
    names = ("x1", "y1", "x2", "y2")
    boxes = [dict(zip(names, box, strict=True), role="button", label="x") for box in ask.truth]
    return {"present": bool(boxes), "boxes": boxes}


def _seen(size: tuple[int, int]) -> dict:
    return {
        "width": size[0],
        "height": size[1],
        "scale_x": 1.0,
        "scale_y": 1.0,
        "offset_x": 0.0,
        "offset_y": 0.0,
    }


def _sampling(k: int) -> dict:
    return {
        "k": k,
        "temperature": 0.7,
        "top_p": 0.95,
        "top_k": 0,
        "presence_penalty": 0.0,
        "max_tokens": 64,
        "seed": 1,
    }
