"""What rendering a request costs the thread that feeds the engine.

`python -m tests.benchmark.render_speed [--screens 24]`. Rendering is chat template, tokens, and the
image processor. The first question about an image pays for the processor, later ones find it in
vLLM's cache. Nano's processor is that of Qwen3-VL; nothing is answered. With `--decoders N` as many
threads decode PNGs meanwhile, as in a job. CPU time of the thread, and wall time.

vLLM 0.32 has one thread for images in its asynchronous engine too (`renderers/base.py`,
`_mm_executor`), since the order of its cache depends on it: more threads would not render more.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from PIL import Image

from pipeline.bench.systems import composed_requests
from pipeline.bench.workloads import Workload, workload_job
from pipeline.cli.job import quiet_libraries
from pipeline.config import load_config
from pipeline.model import resolve_model
from schemas.geometry import Size
from transforms.engines.base import EngineRequest
from transforms.engines.vllm import VllmEngine, sampling_params, start_vllm
from transforms.engines.vllm_request import chat_messages
from transforms.probe.scene import draw_scenes

SIZES = (Size(256, 192), Size(896, 560), Size(1280, 800), Size(1920, 1088))

ENGINE = (
    "model.engine.max_model_len=4096",
    "model.engine.max_num_batched_tokens=4096",
    "model.engine.mm_processor_kwargs={size={shortest_edge=32768,longest_edge=4194304}}",
)


def template() -> tuple[VllmEngine, EngineRequest]:
    """An engine that takes large images, and a request to make others of."""
    config = load_config(None, ('input.shards=["none"]', 'output.dataset="none"', *ENGINE))
    quiet_libraries()
    with tempfile.TemporaryDirectory() as folder:
        job = workload_job(config, Workload("one", 1), 1, Path(folder))
        (request,) = composed_requests(job)
    return start_vllm(resolve_model(config.model).vllm), request


def enqueue(engine: VllmEngine, request: EngineRequest) -> tuple[float, float]:
    """Wall and CPU seconds of one request's rendering; it is forgotten at once."""
    switches = json.loads(request.chat_template_kwargs)
    wall, cpu = time.perf_counter(), time.thread_time()
    (key,) = engine.llm.enqueue_chat(
        [chat_messages(request)],
        sampling_params(request),
        use_tqdm=False,
        chat_template_kwargs=switches,
    )
    spent = time.perf_counter() - wall, time.thread_time() - cpu
    engine.llm.llm_engine.abort_request([key.rpartition("-")[0]])
    return spent


@contextmanager
def decoding(threads: int) -> Iterator[None]:
    """Decode a PNG of 1280x800 over and over in as many threads."""
    buffer = io.BytesIO()
    draw_scenes([Size(1280, 800)], 8, 7)[0].image.save(buffer, "PNG")
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        over.set()
        for worker in workers:
            worker.join()


def measure(
    engine: VllmEngine, request: EngineRequest, size: Size, screens: int, threads: int
) -> str:
    first, again = [], []
    for seed in range(screens + 2):
        image = draw_scenes([size], 8, seed)[0].image
        asked = dataclasses.replace(request, image=image, image_key=f"{threads}-{size}-{seed}")
        spent = enqueue(engine, asked), enqueue(engine, asked)
        if seed >= 2:  # the first ones warm the processor up
            first.append(spent[0])
            again.append(spent[1])
    cells = [median(one[i] for one in of) * 1000 for of in (first, again) for i in (0, 1)]
    most = 1000 / cells[0]
    name = f"{size.width}x{size.height}"
    return f"{name:>10}" + "".join(f"{cell:>12.1f}" for cell in cells) + f"{most:>16.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screens", type=int, default=24)
    parser.add_argument("--decoders", type=int, nargs="+", default=[0, 2])
    options = parser.parse_args()
    engine, request = template()
    try:
        for threads in options.decoders:
            print(f"\n{threads} threads decode meanwhile; milliseconds a request")
            print("     image  first wall   first cpu  again wall   again cpu  most screens/s")
            with decoding(threads):
                for size in SIZES:
                    print(measure(engine, request, size, options.screens, threads), flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    main()
