"""What holds for the tests of the LlamaIndex models: a key in the environment, as users have it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", "csk-key-of-the-environment")
