"""Fixtures that tests of several packages share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from s3_server import S3Server, s3_server, set_credentials

# The tests start dozens of processes that import the same large libraries: where bytecode may not
# be kept, compiling them anew takes most of the time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Hypothesis' limit of 200 ms an example is a wall-time assertion: a busy machine breaks it.
settings.register_profile("pantalla", deadline=None)
settings.load_profile("pantalla")

if TYPE_CHECKING:
    from label_studio.server import StudioServer


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3-compatible server; credentials are in the environment from then on."""
    set_credentials()
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[StudioServer]":
    """A real Label Studio of its own; its first start takes minutes on a busy machine."""
    from studio_server import studio_server

    with studio_server(tmp_path_factory.mktemp("studio")) as server:
        yield server
