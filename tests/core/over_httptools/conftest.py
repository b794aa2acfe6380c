"""Runs the tests of faults, streams, loops and cancellation once more, with httptools below both clients."""

from __future__ import annotations

import importlib.util

import pytest

from cerebras_ext import settings


@pytest.fixture(autouse=True)
def over_httptools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make httptools the default transport."""
    if importlib.util.find_spec("httptools") is None:
        pytest.skip("httptools is not installed")
    monkeypatch.setattr(settings, "DEFAULT_TRANSPORT", "httptools")
