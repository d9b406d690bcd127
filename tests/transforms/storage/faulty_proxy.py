"""An HTTP proxy on 127.0.0.1 in front of a real S3 server, which answers some requests itself."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP = {"transfer-encoding", "connection"}


@dataclass(frozen=True)
class Request:
    """A request as it arrived; `path` is raw, with its query."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Fault:
    """What is answered instead.

    Attributes:
        status: HTTP status; 0 closes the connection without an answer.
        code: S3 error code in the body; a HEAD has none.
        pass_on: whether the server does what was asked before its answer is lost.
    """

    status: int
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    pass_on: bool = False


Rule = Callable[[Request], Fault | None]


@dataclass
class FaultyProxy:
    """The proxy while it runs.

    Attributes:
        rule: what happens to a request; None passes it on.
        requests: everything that arrived, in order.
    """

    target: int
    rule: Rule = lambda _: None
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def times(count: int, fault: Fault, when: Callable[[Request], bool] = lambda _: True) -> Rule:
    """`fault` for the first `count` requests of each method and path that `when` picks."""
    seen: dict[tuple[str, str], int] = {}

    def rule(request: Request) -> Fault | None:
        if not when(request):
            return None
        key = (request.method, request.path)
        seen[key] = seen.get(key, 0) + 1
        return fault if seen[key] <= count else None

    return rule


def _handler(proxy: FaultyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, dict(self.headers.items()))
            proxy.requests.append(request)
            fault = proxy.rule(request)
            if fault is None:
                self.answer(*self.forward(body))
                return
            if fault.pass_on:
                self.forward(body)
            if fault.status == 0:
                self.close_connection = True
                return
            text = f"<Error><Code>{fault.code}</Code><Message>test</Message></Error>".encode()
            self.answer(fault.status, {**fault.headers, "Content-Length": str(len(text))}, text)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do  # noqa: N815 - names of the base

        def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            server = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=30)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
            server.request(self.command, self.path, body, headers)
            reply = server.getresponse()
            data = reply.read()
            kept = {k: v for k, v in reply.getheaders() if k.lower() not in HOP}
            server.close()
            return reply.status, {"Content-Length": str(len(data)), **kept}, data

        def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    return Handler


@contextmanager
def faulty_proxy(target: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    server.daemon_threads = True
    proxy.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
