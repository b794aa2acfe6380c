"""What the core's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cerebras_ext.base_client import BaseClient
from cerebras_ext.errors import CerebrasError
from cerebras_ext.retry import RetryState
from tests.support import KEY, Server, serving


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own settings must not decide a test."""
    for name in ("CEREBRAS_API_KEY", "CEREBRAS_BASE_URL", "CEREBRAS_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def options(server: Server) -> dict[str, Any]:
    """Settings of a client that talks to the scripted server."""
    return {"api_key": KEY, "base_url": server.url}


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between two attempts are noted here instead of taken."""
    taken: list[float] = []
    decide = BaseClient._decide

    def note(retry: RetryState, error: CerebrasError) -> float:
        taken.append(decide(retry, error))
        return 0.0

    monkeypatch.setattr(BaseClient, "_decide", staticmethod(note))
    return taken
