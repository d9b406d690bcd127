"""The local server's database: which one, and a PostgreSQL that ends with us."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from label_studio import database as choosing
from label_studio.database import DatabaseKind, choose_database
from label_studio.postgres import Postgres, cluster_folder, postgres_account, postgres_bin
from schemas.errors import LabelStudioError

# A program of the system, with an account of its own for root: no package of Python brings it.
# What happens without it is tested everywhere.
needs_postgres = pytest.mark.skipif(
    postgres_bin() is None or postgres_account() is None,
    reason="PostgreSQL is not installed (Debian: apt-get install postgresql)",
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose cluster, which may lie elsewhere, goes with it."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(cluster_folder(tmp_path))], check=True)


def test_without_postgresql_it_is_sqlite_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "postgres_bin", lambda: None)
    found = choose_database(tmp_path)
    assert found.postgres is None
    assert found.about == (
        "Database: SQLite, since PostgreSQL is not installed (Debian: apt-get install postgresql); "
        "on SQLite it loses predictions while people work; use it for a trial"
    )
    with pytest.raises(LabelStudioError, match="not installed"):
        choose_database(tmp_path, DatabaseKind.POSTGRESQL)


def test_a_folder_with_sqlite_stays_with_it(tmp_path: Path) -> None:
    (tmp_path / "label_studio.sqlite3").touch()
    found = choose_database(tmp_path)
    assert found.postgres is None
    assert "that is what the data folder holds" in found.about
    with pytest.raises(LabelStudioError, match="holds a sqlite database"):
        choose_database(tmp_path, DatabaseKind.POSTGRESQL)


@needs_postgres
def test_the_choice_and_the_password_are_kept(data_dir: Path) -> None:
    first = choose_database(data_dir).postgres
    assert first is not None
    second = choose_database(data_dir).postgres
    assert second is not None
    assert second.password == first.password
    assert stat.S_IMODE((data_dir / "database.json").stat().st_mode) == 0o600
    with pytest.raises(LabelStudioError, match="holds a postgresql database"):
        choose_database(data_dir, DatabaseKind.SQLITE)


@needs_postgres
def test_it_listens_on_loopback_with_a_password_and_is_gone_after_stop(data_dir: Path) -> None:
    cluster = choose_database(data_dir).postgres
    assert cluster is not None
    cluster.start()
    try:
        assert ask(cluster, cluster.password) == "1"
        assert "password authentication failed" in ask(cluster, "otra")
        process = psutil.Process(cluster._process.pid)  # type: ignore[union-attr]
        listening = {c.laddr.ip for c in process.net_connections() if c.status == "LISTEN"}
        assert listening == {"127.0.0.1"}
    finally:
        cluster.stop()
    assert not answers(cluster.port)
    cluster.start()
    try:
        assert ask(cluster, cluster.password) == "1"
    finally:
        cluster.stop()


@needs_postgres
def test_it_ends_when_we_are_killed(data_dir: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; "
        "from label_studio.database import choose_database; "
        "cluster = choose_database(Path(sys.argv[1])).postgres; cluster.start(); "
        "print(cluster.port, flush=True); time.sleep(600)"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", script, str(data_dir)], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    port = int(started.stdout.readline())
    assert answers(port)
    started.send_signal(signal.SIGKILL)
    started.wait()
    until = time.monotonic() + 60
    while answers(port) and time.monotonic() < until:
        time.sleep(0.1)
    assert not answers(port)


def ask(cluster: Postgres, password: str) -> str:
    """The answer to `select 1`, or what is said instead."""
    programs = postgres_bin()
    assert programs is not None
    where = ["-h", "127.0.0.1", "-p", str(cluster.port), "-U", "pantalla", "-d", "postgres"]
    done = subprocess.run(
        [str(programs / "psql"), *where, "-tAc", "select 1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PGPASSWORD": password},
    )
    return (done.stdout or done.stderr).strip()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
