"""A PostgreSQL of our own for the local Label Studio: own folder, loopback only, ends with us."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import LabelStudioError

HOST = "127.0.0.1"
USER = "pantalla"
DATABASE = "postgres"
"""The database that every cluster has; this one serves nothing else."""

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0

_ROOMS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
_PROGRAMS = ("initdb", "postgres", "pg_isready")
_ACCOUNT = "postgres"
_TAIL = 2000
_SET_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of prctl(2)."""


def postgres_bin() -> Path | None:
    """Folder of the newest installed PostgreSQL's programs, or None."""
    found = [folder for room in _ROOMS for folder in Path("/").glob(room.lstrip("/"))]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    whole = [folder for folder in found if all((folder / name).exists() for name in _PROGRAMS)]
    return max(whole, key=_version, default=None)


def postgres_account() -> str | None:
    """The account to run it as: our own, or `postgres` for root, which it refuses; None = none."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    try:
        return pwd.getpwnam(_ACCOUNT).pw_name
    except KeyError:
        return None


def cluster_folder(data_dir: Path) -> Path:
    """Where the database of `data_dir` lies: inside it, or for root in the home of `postgres`.

    Another account can seldom reach a folder of root's.
    """
    if os.geteuid() != 0:
        return data_dir / "postgres"
    name = hashlib.sha256(str(data_dir).encode()).hexdigest()[:12]
    return Path(pwd.getpwnam(_ACCOUNT).pw_dir) / f"pantalla-studio-{name}"


def die_with_parent(number: signal.Signals) -> Callable[[], None]:
    """What a child runs before its program, so that it gets `number` when we end, even killed."""
    libc = ctypes.CDLL(None, use_errno=True)

    def arrange() -> None:
        libc.prctl(_SET_DEATH_SIGNAL, int(number), 0, 0, 0)

    return arrange


@dataclass(slots=True)
class Postgres:
    """One cluster: made if missing, started, stopped.

    Attributes:
        folder: its files.
        password: of the one user, over loopback.
        log_path: what it prints.
    """

    folder: Path
    password: str
    log_path: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, making the cluster the first time, and wait until it answers.

        Raises:
            LabelStudioError: it is not installed, or does not start; with the end of its log.
        """
        programs = postgres_bin()
        if programs is None or postgres_account() is None:
            raise LabelStudioError("PostgreSQL is not installed, or there is no account to run it")
        if not (self.folder / "PG_VERSION").exists():
            self._make(programs)
        self.port = _free_port()
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        user, group = _account_ids()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [str(programs / "postgres"), "-D", str(self.folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGINT),  # noqa: PLW1509 - only a system call
                user=user,
                group=group,
                extra_groups=None if user is None else [],
            )
        self._wait(programs)

    def stop(self) -> None:
        """Stop it in good order; safe to call again."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()

    def environment(self) -> dict[str, str]:
        """What Label Studio needs to use it."""
        return {
            "DJANGO_DB": "default",
            "POSTGRE_HOST": HOST,
            "POSTGRE_PORT": str(self.port),
            "POSTGRE_USER": USER,
            "POSTGRE_PASSWORD": self.password,
            "POSTGRE_NAME": DATABASE,
        }

    def _make(self, programs: Path) -> None:
        """Run `initdb` into a folder beside, so that a kill leaves no half cluster."""
        partial = self.folder.with_name(f"{self.folder.name}.new")
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir(parents=True, mode=0o700)
        secret = partial.with_name(f"{partial.name}-password")
        descriptor = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(self.password)
        try:
            _give_away(partial, secret)
            settings = [
                "--encoding=UTF8",
                "--no-locale",
                "--auth=scram-sha-256",
                "--data-checksums",
            ]
            _run([
                str(programs / "initdb"), "-D", str(partial), "-U", USER, f"--pwfile={secret}",
                *settings,
            ])  # fmt: skip
        finally:
            secret.unlink(missing_ok=True)
        partial.rename(self.folder)

    def _wait(self, programs: Path) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        ask = [str(programs / "pg_isready"), "-q", "-h", HOST, "-p", str(self.port)]
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            if subprocess.run(ask, check=False, timeout=START_TIMEOUT_S).returncode == 0:
                return
            time.sleep(0.2)
        self.stop()
        tail = self.log_path.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
        raise LabelStudioError(f"PostgreSQL did not start: {tail}")


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(folder)))


def _account_ids() -> tuple[int | None, int | None]:
    """User and group to run as; None = our own."""
    if os.geteuid() != 0:
        return None, None
    account = pwd.getpwnam(_ACCOUNT)
    return account.pw_uid, account.pw_gid


def _give_away(*paths: Path) -> None:
    if os.geteuid() == 0:
        account = pwd.getpwnam(_ACCOUNT)
        for path in paths:
            os.chown(path, account.pw_uid, account.pw_gid)


def _run(command: Sequence[str]) -> None:
    user, group = _account_ids()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=user,
        group=group,
        extra_groups=None if user is None else [],
    )
    if done.returncode != 0:
        raise LabelStudioError(f"making the PostgreSQL cluster failed: {done.stderr[-_TAIL:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
