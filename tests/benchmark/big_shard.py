"""Large shards in little memory: `python -m tests.benchmark.big_shard --kind tar --gigabytes 5`.

Makes a shard of screenshots of 8 MiB each: a small picture, then zeros, for which the tar has
holes, so that the disk holds little; in the other kinds noise, which nothing makes smaller. Runs a
whole job over it with a scripted engine, and starts a unit of its last tenth in a new process.
Prints peak memory above a job over a tiny shard, and what share of a full read the first screen of
that unit costs. Nothing is asserted here; `tests/pipeline/test_big_shard.py` is a small version.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from PIL import Image

MEMBER_BYTES = 8 * 2**20
UNIT_SCREENS = 16
KINDS = ("tar", "tar.gz", "tar.zst", "zip", "parquet")
_ZSTD_FRAME = 4


@dataclass(frozen=True)
class Step:
    """What one process did.

    Attributes:
        peak_bytes: its resident memory at the peak.
        read_bytes: asked of the operating system, cached or not.
    """

    screens: int
    seconds: float
    peak_bytes: int
    read_bytes: int


@dataclass(frozen=True)
class Figures:
    """The whole measurement of one shard; `idle` is a job over two screens."""

    kind: str
    shard_bytes: int
    idle: Step
    job: Step
    last_unit: Step
    full_read: Step

    @property
    def above_idle(self) -> int:
        """Peak memory of the job beyond that of the idle one."""
        return self.job.peak_bytes - self.idle.peak_bytes

    @property
    def share(self) -> float:
        """Bytes read until the first screen of the last unit, of those of reading everything."""
        return self.last_unit.read_bytes / self.full_read.read_bytes


def picture(number: int) -> bytes:
    """A small PNG, different for each number."""
    buffer = io.BytesIO()
    Image.new("RGB", (64 + number % 97, 48 + number // 97), (30, 90, 160)).save(buffer, "PNG")
    return buffer.getvalue()


def make(path: Path, kind: str, size: int) -> None:
    """Write a shard of about `size` bytes of members."""
    count = max(2, size // MEMBER_BYTES)
    members = (picture(number) for number in range(count))
    if kind == "tar":
        _sparse_tar(path, members)
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for number, data in enumerate(members):
                archive.writestr(f"{number:06d}.png", _padded(data, number))
    elif kind == "parquet":
        _parquet(path, members)
    else:
        _packed_tar(path, kind, members)


def _size(number: int) -> int:
    """No two alike: files of one size are compared with each other, which is not measured here."""
    return MEMBER_BYTES - number


def _padded(data: bytes, number: int) -> bytes:
    return data + random.Random(number).randbytes(_size(number) - len(data))


def _headed(number: int) -> bytes:
    info = tarfile.TarInfo(f"{number:06d}.png")
    info.size = _size(number)
    return info.tobuf(tarfile.GNU_FORMAT)


def _to_block(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def _sparse_tar(path: Path, members: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        end = 0
        for number, data in enumerate(members):
            file.seek(end)
            file.write(_headed(number) + data)
            end += tarfile.BLOCKSIZE + _size(number) + -_size(number) % tarfile.BLOCKSIZE
        file.truncate(end + 2 * tarfile.BLOCKSIZE)


def _packed_tar(path: Path, kind: str, members: Iterator[bytes]) -> None:
    """Gzip in one piece; zstd in frames of a few members, as `pzstd` and others write them."""
    with path.open("wb") as file:
        zipped = None
        if kind == "tar.gz":
            zipped = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1)
        frame: list[bytes] = []
        for number, data in enumerate(members):
            frame += [_headed(number), _to_block(_padded(data, number))]
            if zipped:
                zipped.write(b"".join(frame))
            elif number % _ZSTD_FRAME == _ZSTD_FRAME - 1:
                file.write(zstandard.compress(b"".join(frame)))
            else:
                continue
            frame.clear()
        end = b"".join(frame) + bytes(1024)
        if zipped:
            zipped.write(end)
            zipped.close()
        else:
            file.write(zstandard.compress(end))


def _parquet(path: Path, members: Iterator[bytes]) -> None:
    """One row group of everything; an image to a page, since a page is unpacked as a whole."""
    schema = pa.schema([("image", pa.binary())])
    with pq.ParquetWriter(path, schema, use_dictionary=False, write_batch_size=1) as writer:
        # Record batches are gathered into one row group until it has a million rows.
        for number, data in enumerate(members):
            image = pa.array([_padded(data, number)], pa.binary())
            writer.write_batch(pa.record_batch([image], schema))


def measure(kind: str, size: int, folder: Path) -> Figures:
    """Make a shard in `folder` and measure it, each step in a process of its own."""
    suffix = f"x.{kind}"
    tiny, big = folder / "tiny" / suffix, folder / "big" / suffix
    for path, bytes_wanted in ((tiny, 0), (big, size)):
        path.parent.mkdir()
        make(path, kind, bytes_wanted)
    idle, dataset = folder / "idle", folder / "dataset"
    return Figures(
        kind=kind,
        shard_bytes=big.stat().st_size,
        idle=_child("job", tiny, idle),
        job=_child("job", big, dataset),
        last_unit=_child("last", big, dataset),
        full_read=_child("all", big, dataset),
    )


def _child(step: str, shard: Path, dataset: Path) -> Step:
    command = [sys.executable, "-m", "tests.benchmark.big_shard", "--step", step]
    command += ["--shard", str(shard), "--dataset", str(dataset)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return Step(**json.loads(done.stdout.splitlines()[-1]))


def _read_bytes() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def run_step(step: str, shard: Path, dataset: Path) -> Step:
    """Do one step in this process."""
    from pipeline.config import (
        DecisionConfig,
        InputConfig,
        JobConfig,
        ModelConfig,
        OutputConfig,
        SamplingConfig,
    )
    from pipeline.plan import index_store, make_plan
    from pipeline.run import run_job
    from schemas.records import Answer, Completion
    from transforms.engines.base import EngineRequest
    from transforms.engines.scripted import ScriptedEngine
    from transforms.shards import read_unit

    config = JobConfig(
        input=InputConfig(shards=(str(shard),), unit_screens=UNIT_SCREENS),
        output=OutputConfig(dataset=str(dataset)),
        model=ModelConfig(profile="nano", probe="off"),
        sampling=SamplingConfig(k=1),
        decision=DecisionConfig(threshold=0.5),
    )

    def answer(request: EngineRequest) -> Answer:
        return Answer(request.request_id, (Completion("[]", "stop", 2),) * request.n, 50)

    before, began, screens = _read_bytes(), time.monotonic(), 0
    if step == "job":
        outcome = run_job(config, engine_factory=partial(ScriptedEngine, answer))
        screens = outcome.report.figures.counts.screens
    else:
        plan, kept = make_plan(config), index_store(config)
        units = plan.units[-1:] if step == "last" else plan.units
        for unit in units:
            for _ in read_unit(unit, None, kept):
                screens += 1
                if step == "last":
                    break
    return Step(
        screens=screens,
        seconds=round(time.monotonic() - began, 3),
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        read_bytes=_read_bytes() - before,
    )


def _show(figures: Figures) -> None:
    mega = 2**20
    print(f"{figures.kind}: {figures.shard_bytes / mega:,.0f} MiB, {figures.job.screens} screens")
    for name in ("idle", "job", "full_read", "last_unit"):
        step: Step = getattr(figures, name)
        print(
            f"  {name:10} {step.seconds:8.2f} s   peak {step.peak_bytes / mega:7,.0f} MiB   "
            f"read {step.read_bytes / mega:9,.1f} MiB"
        )
    print(f"  job above idle: {figures.above_idle / mega:,.0f} MiB")
    print(f"  first screen of the last unit: {figures.share:.2%} of the bytes of a full read")


def main() -> None:
    """Measure the kinds asked for, or do one step for the parent process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--step", choices=("job", "last", "all"))
    parser.add_argument("--shard", type=Path)
    parser.add_argument("--dataset", type=Path)
    asked = parser.parse_args()
    if asked.step:
        print(json.dumps(asdict(run_step(asked.step, asked.shard, asked.dataset))))
        return
    for kind in asked.kind or KINDS:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            _show(measure(kind, int(asked.gigabytes * 2**30), Path(folder)))


if __name__ == "__main__":
    main()
