"""One push of a dataset at a time: on a disk and on S3, whatever became of the last one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_server import S3Server

from pipeline.push_lease import LEASE, PushLease
from schemas.errors import LabelStudioError
from transforms.storage import Storage, join_uri, storage_for

Place = tuple[Storage, str]

HOLD = """
import sys, time
from pipeline.push_lease import PushLease
from transforms.storage import storage_for
with PushLease(storage_for(sys.argv[1], sys.argv[2] or None), sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "disk":
        yield storage_for(str(tmp_path)), str(tmp_path)
        return
    server: S3Server = request.getfixturevalue("s3")
    server.put("arriendos", {"listo": b""})
    uri = f"s3://arriendos/{tmp_path.name}"
    yield storage_for(uri, server.endpoint), uri


def endpoint(place: Place) -> str:
    return str(getattr(place[0], "endpoint", "") or "")


def test_a_second_push_is_refused_and_told_who_is_first(place: Place) -> None:
    with (
        PushLease(*place),
        pytest.raises(LabelStudioError, match=rf"another push .* \(process {os.getpid()}\)"),
        PushLease(*place),
    ):
        pass
    with PushLease(*place) as lease:
        lease.still_ours()
    assert not place[0].exists(join_uri(place[1], LEASE)), "nothing is left behind"


def test_the_lease_of_a_killed_push_is_taken_over_at_once(place: Place) -> None:
    command = [sys.executable, "-c", HOLD, place[1], endpoint(place)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LabelStudioError, match="another push"), PushLease(*place):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    with PushLease(*place) as lease:
        lease.still_ours()


def test_a_lease_of_another_machine_runs_out(place: Place) -> None:
    storage, uri = place
    now = [1000.0]
    holder = {"owner": "x", "host": "otra", "pid": 1, "started": 0.0, "until": 1300.0}
    storage.create(join_uri(uri, LEASE), json.dumps(holder).encode())
    with pytest.raises(LabelStudioError, match="on otra"), PushLease(*place, clock=lambda: now[0]):
        pass
    now[0] = 1301.0
    with PushLease(*place, clock=lambda: now[0]) as lease:
        lease.still_ours()


def test_a_push_that_was_taken_over_stops_and_leaves_the_other_alone(place: Place) -> None:
    now = [1000.0]
    with PushLease(*place, seconds=300, clock=lambda: now[0]) as first:
        first.still_ours()
        now[0] += 400
        with PushLease(*place, seconds=300, clock=lambda: now[0]) as second:
            with pytest.raises(LabelStudioError, match="taken over"):
                first.still_ours()
            second.still_ours()
            first.__exit__(None, None, None)
            now[0] += 150
            second.still_ours()


def test_a_running_push_keeps_its_lease(place: Place) -> None:
    now = [1000.0]
    with PushLease(*place, seconds=300, clock=lambda: now[0]) as lease:
        for _ in range(10):
            now[0] += 200
            lease.still_ours()
        with pytest.raises(LabelStudioError, match="another push"):
            PushLease(*place, clock=lambda: now[0]).__enter__()


def test_a_broken_record_is_no_lease(place: Place) -> None:
    place[0].create(join_uri(place[1], LEASE), b'{"owner": ')
    with PushLease(*place) as lease:
        lease.still_ours()
