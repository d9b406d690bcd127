"""Peers in processes of their own: started, told what to do, measured, and ended for certain."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from pipeline.bench.throughput import UnequalWorkError
from schemas.errors import EngineError
from tests.benchmark.peer_work import Done
from transforms.engines.processes import reap
from transforms.engines.vllm_settings import VllmSettings, environment

HERE = Path(__file__).parent
HOST = "127.0.0.1"
START_TIMEOUT = 600.0

FOR_COUNTING = frozenset({"disable_log_stats", "enable_logging_iteration_details"})
"""Arguments by which our engine counts what its caches do; nothing that a peer needs."""


def child_environment(settings: VllmSettings) -> dict[str, str]:
    """What our engine is started with, for a peer's: the same threads, cache and silence."""
    variables = {**os.environ, **environment(settings)}
    # vLLM's own servers always have their engine in a process of its own.
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "PYTHONDONTWRITEBYTECODE"):
        variables.pop(name, None)
    return {
        **variables,
        "PYTHONPATH": str(HERE),
        "PYTHONUNBUFFERED": "1",
        "VLLM_SERVER_DEV_MODE": "1",  # opens the calls that empty the caches
        "RAY_USAGE_STATS_ENABLED": "0",
        "NO_PROXY": f"{HOST},localhost",
    }


def engine_options(settings: VllmSettings) -> dict[str, str | None]:
    """vLLM's command line options for the arguments of our engine; None = a flag.

    `generation_config` is added: without it a server takes sampling settings that no request names
    from the checkpoint, and the raw call does not.
    """
    options: dict[str, str | None] = {"generation-config": "vllm", "seed": str(settings.seed)}
    if not settings.is_local:
        options["revision"] = settings.revision
    for name, value in settings.engine.items():
        if name in FOR_COUNTING:
            continue
        words = name.replace("_", "-")
        if isinstance(value, bool):
            options[words if value else f"no-{words}"] = None
        else:
            options[words] = value if isinstance(value, str) else json.dumps(value)
    return options


def option_words(options: Mapping[str, str | None]) -> list[str]:
    """The options as words of a command line."""
    return [
        word
        for name, value in options.items()
        for word in ([f"--{name}"] if value is None else [f"--{name}", value])
    ]


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time so far of these processes and all under them."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used = process.cpu_times()
                    total += used.user + used.system
    return total


@contextlib.contextmanager
def started(
    words: Sequence[str], variables: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[str]]:
    """A process with pipes, ended with all under it when the block is left."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            words,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    under: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        under = psutil.Process(process.pid).children(recursive=True)
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    reap(under)


class Child:
    """A peer that speaks `peer_protocol`."""

    def __init__(
        self, name: str, process: subprocess.Popen[str], log: Path, also: Sequence[int] = ()
    ) -> None:
        self._name, self._process, self._log = name, process, log
        self._pids = (process.pid, *also)
        self.start_seconds = self._hear()["start"]

    def round(self, requests: Path, answers: Path, batch: int = 0) -> Done:
        """One round; `batch` as in `peer_protocol.Turn`.

        Raises:
            EngineError: if the peer died.
            UnequalWorkError: if it wrote no answers.
        """
        before = cpu_seconds(self._pids)
        assert self._process.stdin is not None
        told = {"requests": str(requests), "answers": str(answers), "batch": batch}
        print(json.dumps(told), file=self._process.stdin, flush=True)
        heard = self._hear()
        used = cpu_seconds(self._pids) - before
        if not answers.exists():
            raise UnequalWorkError(f"{self._name} wrote no answers")
        said = json.loads(answers.read_text(encoding="utf-8"))
        start = heard.get("start", 0.0)
        return Done(heard["seconds"], used, said["tokens"], said["texts"], start)

    def _hear(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = self._log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise EngineError(f"{self._name} ended before it was done:\n{tail}")
        return json.loads(line)


def script_words(python: str, module: str, *more: str) -> list[str]:
    """Runs `main` of a file beside this one; imported, so that what it pickles can be found."""
    return [python, "-c", f"from {module} import main; main()", *more]


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_until_up(url: str, process: subprocess.Popen[str], log: Path) -> float:
    """Seconds until the server answers.

    Raises:
        EngineError: if it ends, or does not answer in `START_TIMEOUT`.
    """
    began = time.monotonic()
    while time.monotonic() - began < START_TIMEOUT and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"{url}/v1/models", timeout=5).close()
            return time.monotonic() - began
        time.sleep(0.25)
    tail = log.read_text(encoding="utf-8", errors="replace")[-3000:]
    raise EngineError(f"the server at {url} did not start:\n{tail}")


def environment_with(folder: Path, packages: Sequence[str], *, ours_too: bool = False) -> str:
    """Python of an environment that uv makes in `folder`, or has made before.

    Args:
        folder: named for what is in it.
        packages: to install.
        ours_too: whether it also sees the packages of this environment, vLLM above all.
    """
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run(
            [*uv, "venv", "-q", "--clear", "--python", sys.executable, str(folder)], check=True
        )
        subprocess.run(
            [*uv, "pip", "install", "-q", "--python", str(python), *packages], check=True
        )
        (folder / "complete").touch()
    if ours_too:
        site = next((folder / "lib").glob("python3*/site-packages"))
        ours = Path(psutil.__file__).parents[1]
        (site / "zz_pantalla.pth").write_text(f"{ours}\n", encoding="utf-8")
    return str(python)
