"""A TCP proxy on 127.0.0.1 that cuts connections after a number of bytes from the server."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """The proxy while it runs.

    Attributes:
        cut_after: bytes of the server's that each connection may pass; None never cuts.
        cuts: connections cut so far.
        stalls: leave the connection open instead, and send nothing more.
    """

    listener: socket.socket
    target: int
    cut_after: int | None = None
    cuts: int = 0
    stalls: bool = False
    open: set[socket.socket] = field(default_factory=set)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.open |= {client, server}
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            back = (server, client, True)
            threading.Thread(target=self._pump, args=back, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                limit = self.cut_after if is_answer else None
                if limit is not None and passed + len(data) > limit:
                    sink.sendall(data[: max(limit - passed, 0)])
                    self.cuts += 1
                    while self.stalls and source.recv(65536):
                        pass
                    break
                sink.sendall(data)
                passed += len(data)
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def cutting_proxy(target: int) -> Iterator[Proxy]:
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(listener, target)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        listener.close()
        for end in list(proxy.open):
            end.close()
