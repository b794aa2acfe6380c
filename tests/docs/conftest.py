"""Examples run as a user runs them with a key in the environment, but the key and the service are the emulator's."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from cerebras_ext import Client
from cerebras_ext.emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """An emulator that the environment names, in a process where somebody else uses the shared connections too."""
    with Emulator() as running, Client(api_key="any", base_url=running.base_url) as neighbour:
        neighbour.models()
        running.reset()
        monkeypatch.setenv("CEREBRAS_BASE_URL", running.base_url)
        monkeypatch.setenv("CEREBRAS_API_KEY", "csk-documentation-examples")
        yield running


@pytest.fixture(autouse=True)
def quiet_logging() -> Iterator[None]:
    """Take back what an example does to the loggers of this process."""
    ours, root = logging.getLogger("cerebras_ext"), logging.getLogger()
    level, handlers = ours.level, list(root.handlers)
    yield
    ours.setLevel(level)
    root.handlers[:] = handlers
