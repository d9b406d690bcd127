"""`pantalla studio` as a person uses it: start, read where to log in, Ctrl-C."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from studio_server import free_port, fresh_data

pytestmark = pytest.mark.studio


@pytest.mark.parametrize(
    "stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "sigterm", "sigkill"]
)
def test_it_says_where_to_log_in_and_stops_on_request(tmp_path: Path, stop: signal.Signals) -> None:
    port = free_port()
    fresh_data(tmp_path / "datos")
    command = ["env", "--ignore-signal=INT", sys.executable, "-m", "pipeline.cli.app", "studio"]
    running = subprocess.Popen(
        [*command, "--data-dir", str(tmp_path / "datos"), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert running.stdout is not None
    said = ""
    for line in running.stdout:
        said += line
        if "Stop it with Ctrl-C" in line:
            break
    token = re.search(r"export LABEL_STUDIO_API_KEY=([0-9a-f]{40})", said)
    assert token, said
    assert f"pantalla push DATASET --url http://127.0.0.1:{port}" in said
    login = {"Authorization": f"Token {token[1]}"}
    reply = httpx.get(f"http://127.0.0.1:{port}/api/current-user/whoami", headers=login)
    assert reply.json()["email"] == "revision@example.com"
    running.send_signal(stop)
    rest, _ = running.communicate(timeout=60)
    if stop is signal.SIGKILL:
        assert running.returncode == -stop
    else:
        assert running.returncode == 0, said + rest
        assert "everything is kept in" in rest
        assert not answers(port)
    until = time.monotonic() + 60  # nobody waits for a server whose parent was killed
    while answers(port) and time.monotonic() < until:
        time.sleep(0.2)
    assert not answers(port)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
