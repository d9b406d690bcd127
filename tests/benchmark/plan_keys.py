"""How long `pantalla plan` takes over many keys on S3, and how much memory.

Real keys are put on a real S3-compatible server; more than that would take an hour to make, so the
larger listing comes from a double that speaks S3's listing and sends one picture for every key.
Run with `python -m tests.benchmark.plan_keys [--real 20000] [--double 100000]`.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from s3_server import s3_server, set_credentials

PAGE = 1000


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (1280, 800), "white").save(buffer, "PNG")
    return buffer.getvalue()


def key(number: int) -> str:
    return f"capturas/{number // 1000:04d}/pantalla ñ {number:07d}.png"


@contextmanager
def listing_double(count: int, data: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" not in query:
                first, last = (int(n) for n in self.headers["Range"][6:].split("-"))
                self.answer(206, data[first : last + 1])
                return
            start = int(query.get("continuation-token", ["0"])[0])
            most = min(PAGE, int(query.get("max-keys", [str(PAGE)])[0]))
            end = min(start + most, count)
            items = "".join(
                f"<Contents><Key>{key(n)}</Key><Size>{len(data)}</Size><ETag>e</ETag></Contents>"
                for n in range(start, end)
            )
            more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < count else ""
            flag = str(end < count).lower()
            page = f"<IsTruncated>{flag}</IsTruncated>{more}{items}"
            self.answer(200, f"<ListBucketResult>{page}</ListBucketResult>".encode())

        def do_HEAD(self) -> None:
            self.answer(404, b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response_only(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", "e")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def measure(name: str, endpoint: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.toml")
        job.write_text(
            f'[input]\nshards = ["s3://muchas/capturas/"]\ns3_endpoint = "{endpoint}"\n'
            f'[output]\ndataset = "{folder}/out"\n'
        )
        words = [sys.executable, "-m", "pipeline.cli.app", "plan", str(job)]
        started = time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
    assert status == 0
    assert f"Screens       {count:,}" in out or f"{count:,}" in out, out
    print(out)
    print(
        f"{name}: {count:,} keys in {seconds:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} s of "
        f"CPU), peak {usage.ru_maxrss / 1024:.0f} MiB\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", type=int, default=20_000)
    parser.add_argument("--double", type=int, default=100_000)
    wanted = parser.parse_args()
    set_credentials()
    data = picture()
    with listing_double(1_000, data) as endpoint:
        measure("listing double", endpoint, 1_000)
    with listing_double(wanted.double, data) as endpoint:
        measure("listing double", endpoint, wanted.double)
    with tempfile.TemporaryDirectory() as folder, s3_server(Path(folder)) as server:
        started = time.monotonic()
        server.put("muchas", {key(n): data for n in range(wanted.real)})
        print(f"{wanted.real:,} keys made in {time.monotonic() - started:.0f} s")
        measure("real server", server.endpoint, wanted.real)


if __name__ == "__main__":
    main()
