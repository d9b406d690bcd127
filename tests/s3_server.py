"""A real S3-compatible server (SeaweedFS, from the package index) for the tests."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY, SECRET_KEY = "pantalla-test", "pantalla-test-secret"
START_SECONDS = 60
_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)
_FLAGS = (
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-filer",
    "-s3",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-volume.max=8",
    "-master.volumeSizeLimitMB=64",
    "-master.telemetry=false",
)


@dataclass(frozen=True)
class S3Server:
    """Where the server listens and how to talk to it."""

    endpoint: str

    @property
    def port(self) -> int:
        return urlsplit(self.endpoint).port or 0

    def client(self):  # noqa: ANN201 - boto3 has no types
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
        )

    def put(self, bucket: str, objects: dict[str, bytes]) -> None:
        """Make the bucket where it is missing, and put `objects` by key."""
        client = self.client()
        if bucket not in {b["Name"] for b in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=bucket)
        with ThreadPoolExecutor(16) as pool:
            puts = [
                pool.submit(client.put_object, Bucket=bucket, Key=key, Body=data)
                for key, data in objects.items()
            ]
            for put in puts:
                put.result()


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Start a server that keeps its files in `folder`; it is killed at the end."""
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    config = folder / "s3.json"
    config.write_text(json.dumps(_identities()))
    weed = str(Path(sys.executable).with_name("weed"))
    command = [weed, "server", f"-dir={folder}", f"-s3.config={config}", *_FLAGS]
    command += [f"-{name}={port}" for name, port in ports.items()]
    log = folder / "weed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    server = S3Server(f"http://127.0.0.1:{ports['s3.port']}")
    try:
        _wait(server, process, log)
        yield server
    finally:
        process.send_signal(signal.SIGKILL)  # its orderly end takes half a minute
        process.wait()


def set_credentials() -> None:
    """Give boto3's credential chain what the server accepts."""
    os.environ.update(
        AWS_ACCESS_KEY_ID=ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=SECRET_KEY,
        AWS_DEFAULT_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
    )


def _identities() -> dict[str, object]:
    keys = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "test", "credentials": keys, "actions": actions}]}


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _wait(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            server.put("ready", {"probe": b"1"})
        except (BotoCoreError, ClientError):
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the S3 server did not start: {log.read_text(errors='replace')[-2000:]}")
