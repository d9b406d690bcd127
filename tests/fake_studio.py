"""A small Label Studio over real HTTP that can be told to misbehave.

Only what a push needs. The shapes of its replies were copied from a real 1.23.2 server; the tests
against a real server (marker `studio`) keep them honest.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

TOKEN = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeState:
    """What the server holds, and how it is to misbehave.

    Attributes:
        fail: by action (`import`, `predictions`, `upload`, `whoami`): replies to give instead of
            working, each used once; a status with a body.
        swallow: actions that answer 201 with a full count and keep nothing, this many times.
        poison: sample ids whose import the server refuses, with all that came along.
        access_calls: calls that one access token is good for; None: access is not checked.
        late: actions that do the work and then never answer, this many times.
    """

    projects: dict[int, dict[str, Any]] = field(default_factory=dict)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    predictions: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    fail: dict[str, list[tuple[int, object]]] = field(default_factory=dict)
    swallow: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    poison: set[str] = field(default_factory=set)
    redirect_to: str = ""
    access_calls: int | None = None
    access: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def count(self, line: str) -> int:
        return sum(request == line for request in self.requests)


class RefusedError(Exception):
    """The body is not what the server takes."""


class Handler(BaseHTTPRequestHandler):
    state: FakeState

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def _serve(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self.state.requests.append(f"{method} {url.path}")
        if self.state.redirect_to:
            self._reply(301, None, {"Location": self.state.redirect_to + self.path})
            return
        if not self._has_access(url.path):
            self._reply(401, {"detail": "Given token not valid for any token type"})
            return
        action = self._action(method, url.path)
        queued = self.state.fail.get(action, [])
        if queued:
            self._reply(*queued.pop(0))
            return
        try:
            answer = self._answer(method, url.path, parse_qs(url.query), body)
        except RefusedError:
            self._reply(400, {"detail": "Validation error"})
            return
        if self.state.late.get(action, 0) > 0:
            self.state.late[action] -= 1
            self.close_connection = True
            return
        made = method == "POST" and url.path != "/api/token/refresh/"
        self._reply(201 if made else 200, answer)

    def _has_access(self, path: str) -> bool:
        if self.state.access_calls is None or path in ("/api/version", "/api/token/refresh/"):
            return True
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.state.access[token] = self.state.access.get(token, 0) - 1
        return self.state.access[token] >= 0

    def _renewed(self) -> object:
        """Access for another hour, as its claims say, and for a few calls, as it turns out."""
        claims = {"exp": 4_000_000_000, "jti": len(self.state.access)}
        token = jwt.encode(claims, "x" * 32)
        self.state.access[token] = self.state.access_calls or 0
        return {"access": token}

    def _action(self, method: str, path: str) -> str:
        if path.endswith("/whoami"):
            return "whoami"
        if path.endswith("/import/predictions"):
            return "predictions"
        if path.endswith("/import"):
            multipart = "multipart" in self.headers.get("Content-Type", "")
            return "upload" if multipart else "import"
        return f"{method} {path}"

    def _swallowed(self, action: str) -> bool:
        left = self.state.swallow.get(action, 0)
        self.state.swallow[action] = left - 1
        return left > 0

    def _answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> object:
        if path == "/api/token/refresh/":
            return self._renewed()
        if path == "/api/version":
            return {"release": "1.23.2", "label-studio-os-package": {"version": "1.23.2"}}
        if path.endswith("/whoami"):
            return {"id": 1, "email": "revision@example.com"}
        if path == "/api/tasks/":
            return self._tasks(query)
        if path.startswith("/api/dm/views/"):
            return self._views(method, path, body)
        if path.startswith("/api/tasks/"):
            return self._task(int(path.split("/")[3]), json.loads(body))
        if "import" in path or "file-upload" in path:
            return self._imports(path, body)
        return self._project(method, path, query, body)

    def _tasks(self, query: dict[str, list[str]]) -> object:
        wanted = json.loads(query["query"][0])["filters"]["items"][0]["value"]
        project = int(query["project"][0])
        found = [
            {
                "overlap": 1,
                "total_annotations": 0,
                "cancelled_annotations": 0,
                **task,
                "total_predictions": sum(p["task"] == task["id"] for p in self.state.predictions),
            }
            for task in self.state.tasks
            if task["project"] == project and task["data"]["sample_id"] in wanted
        ]
        return {"tasks": found, "total": len(found)}

    def _task(self, task_id: int, changes: dict[str, Any]) -> object:
        task = next(task for task in self.state.tasks if task["id"] == task_id)
        task.update(changes)
        return task

    def _views(self, method: str, path: str, body: bytes) -> object:
        if method == "GET":
            return self.state.views
        if method == "PATCH":
            view = self.state.views[int(path.split("/")[4]) - 1]
            view.update(json.loads(body))
            return view
        self.state.views.append({"id": len(self.state.views) + 1, **json.loads(body)})
        return self.state.views[-1]

    def _imports(self, path: str, body: bytes) -> object:
        if path.startswith("/api/import/file-upload/"):
            return self.state.files[int(path.rsplit("/", 1)[1]) - 1]
        project = int(path.split("/")[3])
        if path.endswith("/file-uploads"):
            return [file for file in self.state.files if file["file"].split("/")[1] == str(project)]
        if path.endswith("/predictions"):
            rows = json.loads(body)
            if not self._swallowed("predictions"):
                self.state.predictions += rows
            return {"created": len(rows)}
        if "multipart" in self.headers.get("Content-Type", ""):
            return self._upload(project, body)
        rows = json.loads(body)
        poison = self.state.poison
        if poison and any(row["data"]["sample_id"] in poison for row in rows):
            raise RefusedError
        if not self._swallowed("import"):
            first = len(self.state.tasks) + 1
            self.state.tasks += [
                {"id": first + n, "project": project, "data": row["data"]}
                for n, row in enumerate(rows)
            ]
        return {"task_count": len(rows), "prediction_count": 0, "file_upload_ids": []}

    def _upload(self, project: int, body: bytes) -> object:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        part = next(iter(BytesParser(policy=HTTP).parsebytes(head + body).iter_parts()))
        number = len(self.state.files) + 1
        name = f"upload/{project}/{number:08x}-{part.get_filename()}"
        self.state.files.append({"id": number, "file": name, "size": len(body)})
        return {"task_count": 1, "file_upload_ids": [number]}

    def _project(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> object:
        if method == "GET" and path == "/api/projects/":
            found = [
                project
                for project in self.state.projects.values()
                if query["title"][0] in project["title"]
            ]
            return {"count": len(found), "next": None, "previous": None, "results": found}
        if method == "POST" and path == "/api/projects/":
            number = len(self.state.projects) + 1
            self.state.projects[number] = {"id": number, "model_version": "", **json.loads(body)}
            return self.state.projects[number]
        match = re.match(r"/api/projects/(\d+)/", path)
        assert match, path
        number = int(match[1])
        project = self.state.projects[number]
        if method == "PATCH":
            project.update(json.loads(body))
        tasks = [task for task in self.state.tasks if task["project"] == number]
        return {
            **project,
            "total_predictions_number": len(self.state.predictions),
            "task_number": len(tasks),
            "finished_task_number": sum(task.get("total_annotations", 0) > 0 for task in tasks),
        }

    def _reply(self, status: int, answer: object, headers: dict[str, str] | None = None) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Set-Cookie", "sessionid=secreto-de-sesion")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def fake_studio() -> Iterator[tuple[str, FakeState]]:
    """A fake server on a free loopback port: its address and its state."""
    state = FakeState()
    with serve(Handler, state) as url:
        yield url, state


@contextmanager
def serve(handler: type[Handler], state: FakeState) -> Iterator[str]:
    """Serve `state` through `handler` until the block ends; gives the address."""
    bound = type("BoundHandler", (handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
