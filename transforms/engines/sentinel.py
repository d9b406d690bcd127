"""Ends the processes of an engine whose job was killed.

An engine in a process of its own outlives a job that is killed with SIGKILL, and keeps the device.
So the job starts a small process beside it, which waits for the end of a pipe whose other end only
the job holds. Whatever ends the job closes the pipe; then everything that carries the job's mark
in its environment is ended. It needs nothing but the standard library, and Linux's `/proc`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "PANTALLA_ENGINE_OF"
"""Environment variable that every process of an engine inherits; holds the mark of the job."""

_SCANS, _PAUSE = 25, 0.2
"""Looks after the end of the job, and seconds between them: a process may be just being born."""

_started: list[subprocess.Popen[bytes]] = []


def guard() -> None:
    """Start the sentinel of this process, once; children started from now on carry its mark."""
    if _started and _started[0].poll() is None:
        return
    _started.clear()
    mark = f"{os.getpid()}-{time.time_ns()}"
    command = [sys.executable, "-I", "-S", str(Path(__file__)), mark]
    _started.append(
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C, or a signal to the whole group, is not for it
        )
    )
    os.environ[MARK] = mark
    # vLLM writes a title over the place of its arguments and, without this, of its environment.
    os.environ.setdefault("SPT_NOENV", "1")


def marked(mark: str) -> list[int]:
    """Ids of the processes that carry the mark, but for those that clean up after the others."""
    wanted = f"{MARK}={mark}".encode()
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit()
        and wanted in _content(folder / "environ").split(b"\0")
        and b"resource_tracker" not in _content(folder / "cmdline")
    ]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile, or belongs to someone else
        return b""


def _main(mark: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for _ in range(_SCANS):
        for process in marked(mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    _main(sys.argv[1])
