"""Label Studio itself, in an environment of its own, closed to the network.

Its pins cannot be resolved beside vLLM's, and it is a Python package of our own package's name: it
is installed apart by `uv` and only ever run from its console script.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from schemas.errors import LabelStudioError

STUDIO_VERSION = "1.23.2"
"""The version whose behaviour was measured; another one needs the tests run again."""

INSTALL_TIMEOUT_S = 900
_DONE = "pantalla-complete"
_KEPT = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ"),
    # For pictures that the server reads itself: from a folder, or from S3 on a private address.
    "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED",
    "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT",
    "LABEL_STUDIO_SSRF_PROTECTION_ENABLED",
)
# A proxy that refuses at once: what the server would fetch from outside fails without a wait or a
# name look-up. Its login page asks for tips on the web, which has no switch of its own.
_NOWHERE = "http://127.0.0.1:9"


def install_studio() -> Path:
    """The console script of Label Studio, installed into the user's cache the first time.

    Raises:
        LabelStudioError: if `uv` is missing or the installation fails.
    """
    home = user_cache_path("pantalla") / f"label-studio-{STUDIO_VERSION}"
    script = home / "bin" / "label-studio"
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        if not (home / _DONE).exists():
            uv = uv_command()
            _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)])
            package = f"label-studio=={STUDIO_VERSION}"
            python = str(home / "bin" / "python")
            _run([*uv, "pip", "install", "--quiet", "--python", python, package])
            (home / _DONE).write_text(f"{STUDIO_VERSION}\n", encoding="utf-8")
    return script


def uv_command() -> list[str]:
    """How to call uv: the one on the path, or the package of this environment.

    Raises:
        LabelStudioError: if there is neither.
    """
    found = shutil.which("uv")
    if found:
        return [found]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise LabelStudioError("uv is not installed: `python -m pip install uv`, then try again")


def studio_environment(
    data_dir: Path, account: dict[str, str], database: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Environment variables of the server: closed to the network, nothing of ours leaking in.

    The server reads every setting under three names, one of them bare (`HOST`, `DEBUG`), so the
    caller's environment is not passed on except for a few names.

    Args:
        data_dir: where it keeps its database and pictures.
        account: `user`, `password` and `token`, used by the server on its first start only.
        database: where PostgreSQL is; default: SQLite in `data_dir`.
    """
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "LABEL_STUDIO_BASE_DATA_DIR": str(data_dir),
        "LABEL_STUDIO_USERNAME": account["user"],
        "LABEL_STUDIO_PASSWORD": account["password"],
        "LABEL_STUDIO_USER_TOKEN": account["token"],
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
        "COLLECT_ANALYTICS": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LATEST_VERSION_CHECK": "false",
        "FEATURE_FLAGS_OFFLINE": "true",
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _NOWHERE),
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "PYTHONUNBUFFERED": "1",
        **(database or {}),
    }


def _run(command: list[str]) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment.pop("VIRTUAL_ENV", None)
    try:
        subprocess.run(
            command,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
        )
    except subprocess.CalledProcessError as error:
        raise LabelStudioError(
            f"installing Label Studio failed ({' '.join(command[:4])} ...): {error.stderr[-2000:]}"
        ) from error
    except (subprocess.TimeoutExpired, OSError) as error:
        raise LabelStudioError(f"installing Label Studio failed: {error}") from error
