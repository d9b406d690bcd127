"""Fixtures of the Label Studio tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_studio import TOKEN, FakeState, fake_studio

from label_studio.client import ServerSettings


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ServerSettings, FakeState]]:
    """A fake server that can misbehave, and the settings to push to it."""
    monkeypatch.setenv("TOKEN_DE_PRUEBA", TOKEN)
    with fake_studio() as (url, state):
        settings = ServerSettings(
            url, "Revisión de prueba", "TOKEN_DE_PRUEBA", settle_waits_s=(0.01, 0.01, 0.01)
        )
        yield settings, state
