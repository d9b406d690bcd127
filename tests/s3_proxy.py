"""An HTTP proxy on 127.0.0.1 before a real S3-compatible server, which it can be told to spoil.

The client signs for the proxy's address, and the server checks the signature over the `Host` it
receives: requests are passed on with the header they came with.
"""

import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from s3_server import S3Server

_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>{}</Message></Error>'
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect"})

REFUSALS = {
    "slow_down": (503, "SlowDown"),
    "unavailable": (503, "ServiceUnavailable"),
    "internal": (500, "InternalError"),
    "too_many": (429, "TooManyRequestsException"),
    "throttled": (400, "ThrottlingException"),
    "request_timeout": (400, "RequestTimeout"),
    "expired": (400, "ExpiredToken"),
    "conflict": (409, "OperationAborted"),
    "gateway": (502, "BadGateway"),
}
"""Faults that the client is told of; the server never sees the request."""

CUTS = ("reset", "reset_after", "error_after", "cut_answer", "stall")
"""Faults on the way: before the server or, with the request carried out, after it."""

FAULTS = (*REFUSALS, *CUTS)

Choice: TypeAlias = Callable[["Request"], str | None]


@dataclass(frozen=True)
class Request:
    """What a fault is chosen by; `operation` is GET, HEAD, PUT, DELETE, POST or LIST."""

    operation: str
    key: str
    conditional: bool


@dataclass
class Faults:
    """What the proxy did, and what it is to do.

    Attributes:
        choose: the fault for a request, or None.
        ignore_conditions: take no notice of `If-None-Match`, like some stores.
        stall_seconds: how long a stalled answer is held back before its connection is cut.
        done: faults by kind and operation; `requests`: all requests by operation.
    """

    choose: Choice = lambda _: None
    ignore_conditions: bool = False
    stall_seconds: float = 3.0
    done: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        return sum(self.done.values())

    def pick(self, request: Request) -> str | None:
        with self.lock:
            self.requests[request.operation] += 1
            fault = self.choose(request)
            if fault is not None:
                self.done[fault, request.operation] += 1
            return fault


def at_random(seed: int, share: float, faults: tuple[str, ...] = FAULTS, limit: int = 0) -> Choice:
    """Each request is spoiled with probability `share`, by any of `faults`; at most `limit`."""
    source = random.Random(seed)
    left = [limit]

    def choose(_: Request) -> str | None:
        if source.random() >= share or (limit and not left[0]):
            return None
        left[0] -= 1
        return source.choice(faults)

    return choose


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    faults: Faults
    target: str

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        listing = self.command == "GET" and "list-type" in url.query
        operation = "LIST" if listing else self.command
        conditional = "If-None-Match" in self.headers
        fault = self.faults.pick(Request(operation, url.path, conditional))
        if fault in REFUSALS:
            self._refuse(*REFUSALS[fault])
        elif fault == "reset":
            self._reset()
        elif fault == "stall":
            time.sleep(self.faults.stall_seconds)
            self._reset()
        elif conditional and self.faults.ignore_conditions:
            self._put_anyway(url.path, body)
        else:
            self._pass_on(body, fault)

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _pass_on(self, body: bytes, fault: str | None) -> None:
        upstream = http.client.HTTPConnection(self.target, timeout=30)
        with suppress_close(upstream):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP:
                    upstream.putheader(name, value)
            upstream.endheaders(body or None)
            reply = upstream.getresponse()
            data = reply.read()
        if fault == "reset_after":
            self._reset()
        elif fault == "error_after":
            self._refuse(500, "InternalError")
        else:
            self._answer(reply, data, cut=fault == "cut_answer")

    def _put_anyway(self, path: str, body: bytes) -> None:
        """Store it without the condition: the header is signed, so we sign a request of our own."""
        bucket, _, key = unquote(path).lstrip("/").partition("/")
        S3Server(f"http://{self.target}").client().put_object(Bucket=bucket, Key=key, Body=body)
        self.send_response_only(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, reply: http.client.HTTPResponse, data: bytes, *, cut: bool) -> None:
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.getheaders():
            if name.lower() not in _HOP | {"content-length"}:
                self.send_header(name, value)
        announced = reply.getheader("Content-Length") if self.command == "HEAD" else len(data)
        if announced is not None:
            self.send_header("Content-Length", str(announced))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(data[: len(data) // 2] if cut and data else data)
        if cut:
            self._reset()

    def _refuse(self, status: int, code: str) -> None:
        data = b"" if self.command == "HEAD" else _ERROR.format(code, "injected").encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _reset(self) -> None:
        """Close with a reset rather than an orderly end."""
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def suppress_close(connection: http.client.HTTPConnection) -> Iterator[None]:
    try:
        yield
    finally:
        connection.close()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


@contextmanager
def s3_proxy(port: int) -> Iterator[tuple[str, Faults]]:
    """A proxy of the S3 server on `port`: its address, and how it is told to misbehave."""
    faults = Faults()
    handler = type("Bound", (Handler,), {"faults": faults, "target": f"127.0.0.1:{port}"})
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
