"""A real Label Studio for tests, started once per session, and a browser to look at it."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path
from playwright.sync_api import Page, sync_playwright

from label_studio.database import DatabaseKind
from label_studio.server import StudioServer
from label_studio.studio_env import STUDIO_VERSION

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TOKEN_ENV = "PANTALLA_PRUEBA_TOKEN"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fresh_data(data_dir: Path) -> None:
    """Fill `data_dir` with what a first start leaves: an account and a migrated, empty database.

    The migrations are a minute of CPU time; they are run once per machine and version.
    """
    template = user_cache_path("pantalla") / f"studio-template-{STUDIO_VERSION}"
    if not template.exists():
        made = data_dir.with_name(f"{data_dir.name}-template")
        with StudioServer(made, free_port(), DatabaseKind.SQLITE):
            pass
        partial = template.with_name(f"{template.name}.{os.getpid()}")
        shutil.copytree(made, partial)
        if not template.exists():
            partial.rename(template)
    shutil.copytree(template, data_dir, dirs_exist_ok=True)


@contextmanager
def studio_server(data_dir: Path) -> Iterator[StudioServer]:
    """A local server without projects; its token is in `TOKEN_ENV` from then on."""
    fresh_data(data_dir)
    files = data_dir / "files"
    files.mkdir()
    os.environ["LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED"] = "true"
    os.environ["LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT"] = str(files)
    os.environ["LABEL_STUDIO_SSRF_PROTECTION_ENABLED"] = "false"  # its S3 is on this machine
    with StudioServer(data_dir, free_port()) as server:
        os.environ[TOKEN_ENV] = server.account.token
        yield server


def _install_chromium() -> None:
    """Another test process may have installed it meanwhile."""
    if CHROMIUM.exists():
        return
    subprocess.run(["apt-get", "update", "-q"], check=True, timeout=300)
    line = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(line, check=True, env=environment, timeout=900)


def chromium() -> Path:
    """Debian's Chromium, installed where that is allowed; else the line to type."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        with FileLock(Path(tempfile.gettempdir()) / "pantalla-tests-chromium.lock"):
            _install_chromium()
    assert CHROMIUM.exists(), "Chromium is missing: sudo apt-get install -y chromium"
    return CHROMIUM


@contextmanager
def logged_in_page(server: StudioServer) -> Iterator[Page]:
    """A browser page of a reviewer who is logged in."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(60_000)
            page.goto(f"{server.url}/user/login/")
            page.fill("input[name=email]", server.account.user)
            page.fill("input[name=password]", server.account.password)
            page.click("button[type=submit]")
            page.wait_for_url(lambda url: "login" not in url, wait_until="commit")
            yield page
        finally:
            browser.close()
