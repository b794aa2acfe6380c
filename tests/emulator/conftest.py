"""One emulator a module, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cerebras_ext.emulator import Emulator


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def emu(running: Emulator) -> Emulator:
    running.reset()
    return running
