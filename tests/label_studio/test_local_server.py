"""The local server's account, port and environment; starting it for real is in test_studio_push."""

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from label_studio.server import StudioServer, load_account
from label_studio.studio_env import studio_environment, uv_command
from schemas.errors import LabelStudioError


def test_the_account_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    account = load_account(tmp_path)
    assert load_account(tmp_path) == account
    assert len(account.token) == 40
    assert len(account.password) >= 16
    assert stat.S_IMODE((tmp_path / "account.json").stat().st_mode) == 0o600


def test_a_database_without_its_account_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "label_studio.sqlite3").touch()
    with pytest.raises(LabelStudioError, match=r"no account\.json"):
        load_account(tmp_path)


def test_a_taken_port_is_an_error_not_another_port(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(LabelStudioError, match=f"port {port} on 127.0.0.1 cannot be used"):
            StudioServer(tmp_path, port).start()


def test_nothing_of_our_environment_leaks_into_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "HOST", "DEBUG", "LABEL_STUDIO_HOST", "AWS_PROFILE"):
        monkeypatch.setenv(name, "fuga")
    account = {"user": "u@example.com", "password": "clave", "token": "0" * 40}
    environment = studio_environment(tmp_path, account)
    assert "fuga" not in environment.values()
    assert environment["COLLECT_ANALYTICS"] == "false"
    assert environment["SENTRY_DSN"] == ""
    assert environment["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert environment["LABEL_STUDIO_BASE_DATA_DIR"] == str(tmp_path)


def test_uv_is_found_without_being_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = uv_command()
    assert command == [sys.executable, "-m", "uv"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("uv ")
