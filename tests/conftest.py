"""Fixtures that tests of several packages share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from s3_server import S3Server, s3_server, set_credentials


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3-compatible server; credentials are in the environment from then on."""
    set_credentials()
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server
