"""Iterates pictures with Hugging Face `datasets`; run by `loader_speed` in its own environment.

Prints one line of JSON: screens, seconds, CPU seconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

SIZE = (1280, 800)


def consume(rows: Iterable[dict], column: str) -> int:  # type: ignore[type-arg] # rows of datasets
    done = 0
    for row in rows:
        image = row[column].convert("RGB")
        if image.size != SIZE:
            image = image.resize(SIZE)
        done += 1
    return done


def worker(rows: Iterable[dict], column: str, done: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    done.put(consume(rows, column))


def main() -> None:
    kind, folder, suffix, processes = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    with tempfile.TemporaryDirectory() as cache:
        if kind == "imagefolder":
            rows = load_dataset("imagefolder", data_dir=folder, split="train", cache_dir=cache)
            column = "image"
            parts = [rows.shard(processes, i, contiguous=True) for i in range(processes)]
        else:
            tars = sorted(map(str, Path(folder).iterdir()))
            column = suffix
            parts = [
                load_dataset(
                    "webdataset", data_files={"train": tars[i::processes]}, split="train",
                    streaming=True, cache_dir=cache,
                )
                for i in range(processes)
            ]  # fmt: skip
        started, cpu = time.monotonic(), os.times()
        if processes == 1:
            screens = consume(parts[0], column)
        else:
            done: multiprocessing.Queue = multiprocessing.Queue()
            workers = [
                multiprocessing.Process(target=worker, args=(part, column, done)) for part in parts
            ]
            for one in workers:
                one.start()
            screens = sum(done.get() for _ in workers)
            for one in workers:
                one.join()
        used = sum(os.times()[:4]) - sum(cpu[:4])
        seconds = time.monotonic() - started
    print(json.dumps({"screens": screens, "seconds": seconds, "cpu": used}))


if __name__ == "__main__":
    main()
