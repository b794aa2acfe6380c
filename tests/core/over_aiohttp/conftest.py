"""Runs the tests of faults, streams, loops and cancellation once more, with aiohttp below the async client."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cerebras_ext import settings

HERE = Path(__file__).parent


def is_async(item: pytest.Item) -> bool:
    """Whether a test can reach the async client: by its way of asking, or because it has no such parameter."""
    call = getattr(item, "callspec", None)
    ways = [] if call is None else [value for value in call.params.values() if hasattr(value, "is_async")]
    return all(way.is_async for way in ways)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out here what only concerns the sync client, which is the same over both transports."""
    left_out = [item for item in items if item.path.parent == HERE and not is_async(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def over_aiohttp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make aiohttp the default transport."""
    if importlib.util.find_spec("httpx_aiohttp") is None:
        pytest.skip("httpx-aiohttp is not installed")
    monkeypatch.setattr(settings, "DEFAULT_TRANSPORT", "aiohttp")
