"""A local Label Studio for people who have no server: on this machine only, stopped with us."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from label_studio.database import SQLITE_FILE, Database, DatabaseKind, choose_database
from label_studio.postgres import die_with_parent
from label_studio.studio_env import install_studio, studio_environment
from schemas.errors import LabelStudioError

HOST = "127.0.0.1"
DEFAULT_PORT = 8080
START_TIMEOUT_S = 600.0
"""A first start with its migrations took up to 130 s on two busy cores."""

STOP_TIMEOUT_S = 20.0
_USER = "revision@example.com"
_ACCOUNT_FILE = "account.json"
_LOG_FILE = "server.log"
_TAIL = 2000

Say = Callable[[str], None]
"""Receives a line for a person."""


@dataclass(frozen=True, slots=True)
class StudioAccount:
    """The one account of a local server; made once and kept, readable by its owner only."""

    user: str
    password: str
    token: str


class StudioServer:
    """A running local server as a context manager.

    Args:
        data_dir: where database, pictures, account and log are kept; made if missing.
        port: port on 127.0.0.1; it must be free, since Label Studio would silently take another.
        database: SQLite or PostgreSQL, for a data folder that has neither yet.

    It ends with the process that started it, however that ends.

    Attributes:
        url: its address.
        account: who can log in.
        log_path: what the server prints.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = DEFAULT_PORT,
        database: DatabaseKind = DatabaseKind.AUTO,
    ) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self.port = port
        self.url = f"http://{HOST}:{port}"
        self.log_path = self.data_dir / _LOG_FILE
        self._wanted = database
        self._database: Database | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._account: StudioAccount | None = None

    @property
    def account(self) -> StudioAccount:
        """The account; there is one once the server was started."""
        if self._account is None:
            raise LabelStudioError("the local server was not started yet")
        return self._account

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Install if needed, start, and wait until the server answers.

        Raises:
            LabelStudioError: the port is taken, the installation failed, or the server did not
                come up; with the end of its log.
        """
        _require_free(self.port)
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._account = load_account(self.data_dir)
        script = install_studio()
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._launch(script, self._start_database())
            self._wait_until_up(timeout_s)
            undo.pop_all()
        return self

    @property
    def database(self) -> str:
        """One line about the database; empty before the start."""
        return self._database.about if self._database else ""

    def wait(self) -> int:
        """Block until the server ends; returns its exit status."""
        return self._running().wait()

    def stop(self) -> None:
        """Stop the server that this object started, then its database; safe to call again."""
        process, self._process = self._process, None
        try:
            if process is not None and process.poll() is None:
                _end(process)
        finally:
            if self._database is not None and self._database.postgres is not None:
                self._database.postgres.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_database(self) -> dict[str, str]:
        """Start PostgreSQL where it is used; what the server needs to know of it."""
        self._database = choose_database(self.data_dir, self._wanted)
        cluster = self._database.postgres
        if cluster is None:
            return {}
        cluster.start()
        return cluster.environment()

    def _launch(self, script: Path, database: dict[str, str]) -> None:
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [str(script), *self._arguments()],
                env=studio_environment(self.data_dir, asdict(self.account), database),
                cwd=self.data_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - only a system call
            )

    def _arguments(self) -> list[str]:
        host = ["--internal-host", HOST, "--port", str(self.port)]
        return ["start", "--no-browser", *host, "--log-level", "WARNING"]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise LabelStudioError("the local server is not running")
        return self._process

    def _wait_until_up(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            status = self._running().poll()
            if status is not None:
                raise LabelStudioError(f"Label Studio ended with {status}: {self._log_tail()}")
            if _is_up(self.url):
                return
            time.sleep(0.5)
        raise LabelStudioError(
            f"Label Studio did not answer within {timeout_s:.0f} s: {self._log_tail()}"
        )

    def _log_tail(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")[-_TAIL:]


def run_studio(
    data_dir: Path,
    port: int = DEFAULT_PORT,
    say: Say = print,
    database: DatabaseKind = DatabaseKind.AUTO,
) -> int:
    """Run a local server in the foreground until Ctrl-C or SIGTERM.

    Args:
        data_dir: where it keeps everything.
        port: port on 127.0.0.1.
        say: receives the lines for the person who started it.
        database: SQLite or PostgreSQL, for a data folder that has neither yet.

    Returns:
        Exit status: 0 when stopped on request, else the server's own.
    """
    say(f"Starting Label Studio on {HOST}:{port} (the first start takes a minute or two) ...")
    # A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    server = StudioServer(data_dir, port, database)
    try:
        with server:
            for line in welcome(server):
                say(line)
            return server.wait()
    except KeyboardInterrupt:
        say("Label Studio is stopped; everything is kept in " + str(server.data_dir))
        return 0


def welcome(server: StudioServer) -> list[str]:
    """What a person needs to log in and to push, line by line."""
    return [
        f"Label Studio is ready: {server.url}",
        f"  user      {server.account.user}",
        f"  password  {server.account.password}",
        f"  {server.database}",
        "To push to it from another terminal:",
        f"  export LABEL_STUDIO_API_KEY={server.account.token}",
        f"  pantalla push DATASET --url {server.url}",
        "It answers on this machine only and calls nothing outside. Stop it with Ctrl-C.",
    ]


def load_account(data_dir: Path) -> StudioAccount:
    """The account kept in `data_dir`, made the first time with mode 0600.

    Raises:
        LabelStudioError: a database exists without its account, or the account is unreadable.
    """
    path = data_dir / _ACCOUNT_FILE
    if path.exists():
        try:
            return StudioAccount(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise LabelStudioError(f"{path} is not an account: {error}") from error
    if (data_dir / SQLITE_FILE).exists():
        raise LabelStudioError(f"{data_dir} holds a Label Studio database, but no {_ACCOUNT_FILE}")
    account = StudioAccount(_USER, secrets.token_urlsafe(12), secrets.token_hex(20))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(account), file)
    return account


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _require_free(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise LabelStudioError(
                f"port {port} on {HOST} cannot be used ({error.strerror}); choose another"
            ) from error


def _is_up(url: str) -> bool:
    try:
        with httpx.Client(trust_env=False, timeout=5.0) as http:
            return http.get(f"{url}/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
