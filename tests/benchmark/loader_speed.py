"""Screens a second from shard to model-ready pixels on two cores, beside others.

`python -m tests.benchmark.loader_speed [--screens 200] [--rounds 5] [--json FILE]`. Ours are the
job's own stages (read, decode, resize) with their threads; they also hash every file, check that it
is whole, and read its sidecar. Beside them: `datasets` (imagefolder and webdataset, in an
environment that uv makes) and plain Pillow in a loop. Systems alternate; medians are printed.
Figures are printed, nothing is asserted.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[2]
DATASETS = Path(__file__).with_name("loader_datasets.py")
SIZE = (1280, 800)
OURS = "pantalla"
LOOPS = ("Pillow loop", "datasets imagefolder", "datasets webdataset")
SYSTEMS = (OURS, *LOOPS, "Pillow 2 threads", "datasets imagefolder x2", "datasets webdataset x2")


def pictures(count: int) -> list[Image.Image]:
    """The bundled real pages, each time with other text on them."""
    pages = []
    for tar in sorted((ROOT / "pipeline/demo/screens").glob("*.tar")):
        with tarfile.open(tar) as archive:
            files = [archive.extractfile(info) for info in archive if info.name.endswith(".png")]
            data = [file.read() for file in files if file]
        pages += [Image.open(io.BytesIO(one)).convert("RGB").resize(SIZE) for one in data]
    draw = random.Random(7)
    made = []
    for number in range(count):
        page = pages[number % len(pages)].copy()
        for _ in range(20):
            place = draw.randrange(SIZE[0]), draw.randrange(SIZE[1])
            ImageDraw.Draw(page).text(place, f"Pantalla {number} {draw.random()}", "black")
        made.append(page)
    return made


def encoded(image: Image.Image, suffix: str) -> bytes:
    buffer = io.BytesIO()
    if suffix == "png":
        image.save(buffer, "PNG")
    else:
        image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def lay_out(root: Path, images: list[Image.Image], suffix: str) -> None:
    """The same files as a folder and as two tars with sidecars."""
    (root / "folder").mkdir(parents=True)
    (root / "tars").mkdir()
    tars = [tarfile.open(root / "tars" / f"{n}.tar", "w") for n in range(2)]  # noqa: SIM115
    for number, image in enumerate(images):
        data = encoded(image, suffix)
        (root / "folder" / f"{number:05d}.{suffix}").write_bytes(data)
        sidecar = json.dumps({"queries": [{"instruction": f"Abrí {number}"}]}).encode()
        for name, content in ((f"{number:05d}.{suffix}", data), (f"{number:05d}.json", sidecar)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tars[number % 2].addfile(info, io.BytesIO(content))
    for tar in tars:
        tar.close()


def ours(root: Path) -> int:
    from transforms.decode import ImageSettings
    from transforms.load import LoadSettings, decode, read
    from transforms.prefetch import parallel_flat_map
    from transforms.profiles.load import load_profile
    from transforms.resize.show import seen_image
    from transforms.shards import index_shard, list_shards, split_units
    from transforms.work import Decoded

    rule = load_profile("qwen3-vl").resize
    settings = LoadSettings(ImageSettings(), "never", can_enumerate=False)
    shards = list_shards([f"{root}/tars/"])
    units = [unit for shard in shards for unit in split_units(shard, index_shard(shard), 64)]

    def show(event: object) -> list[bool]:
        return [seen_image(event.image, rule)[0].size == SIZE] if isinstance(event, Decoded) else []

    with ThreadPoolExecutor(2) as pool:
        decoded = decode(read(units, settings), settings, pool)
        return sum(parallel_flat_map(pool, show, decoded, 8))


def open_one(file: Path) -> bool:
    with Image.open(file) as image:
        pixels = image.convert("RGB")
    return (pixels if pixels.size == SIZE else pixels.resize(SIZE)).size == SIZE


def pillow(root: Path, threads: int) -> int:
    files = sorted((root / "folder").iterdir())
    if threads == 1:
        return sum(open_one(file) for file in files)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(open_one, files))


def child(system: str, root: Path) -> None:
    run = {OURS: lambda: ours(root), "Pillow loop": lambda: pillow(root, 1)}.get(
        system, lambda: pillow(root, 2)
    )
    run()  # imports, plugins and caches
    started, cpu = time.monotonic(), time.process_time()
    screens = run()
    used = time.process_time() - cpu
    print(json.dumps({"screens": screens, "seconds": time.monotonic() - started, "cpu": used}))


def command(system: str, root: Path, suffix: str, python: str) -> list[str]:
    if not system.startswith("datasets"):
        return [sys.executable, "-m", "tests.benchmark.loader_speed", "--child", system, str(root)]
    kind = system.split()[1]
    folder = root / ("folder" if kind == "imagefolder" else "tars")
    return [python, str(DATASETS), kind, str(folder), suffix, "2" if system.endswith("x2") else "1"]


def measure(words: list[str], expected: int) -> dict[str, float]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(done.stderr[-3000:])
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["screens"] == expected, found
    return {"rate": expected / found["seconds"], "cpu": found["cpu"] / expected * 1000}


def environment(folder: Path) -> str:
    """Python of an environment with `datasets` and our Pillow."""
    import PIL

    python = folder / "env" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(folder / "env")], check=True)
    wanted = ["datasets>=4,<6", f"pillow=={PIL.__version__}"]
    subprocess.run([*uv, "pip", "install", "-q", "--python", str(python), *wanted], check=True)
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", nargs="+", default=["png", "jpg"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("SYSTEM", "FOLDER"), help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.child:
        child(wanted.child[0], Path(wanted.child[1]))
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    results: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder))
        images = pictures(wanted.screens)
        for suffix in wanted.formats:
            root = Path(folder, suffix)
            lay_out(root, images, suffix)
            results[suffix] = compare(root, suffix, python, wanted)
    if wanted.json:
        wanted.json.write_text(json.dumps(results, indent=2))


def compare(
    root: Path, suffix: str, python: str, wanted: argparse.Namespace
) -> dict[str, dict[str, float]]:
    runs: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS}
    for _ in range(wanted.rounds):
        for system in SYSTEMS:
            words = command(system, root, suffix, python)
            runs[system].append(measure(words, wanted.screens))
    medians = {
        system: {key: statistics.median(run[key] for run in of) for key in ("rate", "cpu")}
        for system, of in runs.items()
    }
    best = max(medians[system]["rate"] for system in LOOPS)
    print(f"\n{suffix}, {wanted.screens} screens of 1280x800, median of {wanted.rounds}")
    print(f"{'system':26}{'screens/s':>10}{'CPU ms/screen':>15}{'ours / it':>11}")
    for system, found in medians.items():
        ratio = medians[OURS]["rate"] / found["rate"]
        print(f"{system:26}{found['rate']:>10.1f}{found['cpu']:>15.1f}{ratio:>11.2f}")
    print(f"ours / the faster of {', '.join(LOOPS)}: {medians[OURS]['rate'] / best:.2f}")
    return medians


if __name__ == "__main__":
    main()
