"""The small version of `python -m tests.long.review_load`, on the session's server."""

import os
from pathlib import Path

import pytest
from long.review_load import run_load
from studio_server import TOKEN_ENV

from label_studio.server import StudioServer

pytestmark = pytest.mark.studio


def test_each_sample_once_and_each_review_once_though_pushes_and_pulls_are_killed(
    studio: StudioServer, tmp_path: Path
) -> None:
    assert os.environ[TOKEN_ENV] == studio.account.token
    figures = run_load(studio, tmp_path, tasks=40, answers=12)
    assert figures.tasks == 40
    assert figures.answered >= 12
    assert figures.standing <= figures.versions
