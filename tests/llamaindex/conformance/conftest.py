"""Subjects, the emulator, and listeners on LlamaIndex's instrumentation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cerebras_ext.emulator import Emulator
from tests.llamaindex.conformance.listening import Listener, listening
from tests.llamaindex.conformance.service import Service
from tests.llamaindex.conformance.subjects import Subject, subjects


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test the subjects that its `needs` mark asks for."""
    if "subject" not in metafunc.fixturenames:
        return
    needs = {name for mark in metafunc.definition.iter_markers("needs") for name in mark.args}
    chosen = [subject for subject in subjects() if needs <= subject.features | {subject.endpoint}]
    metafunc.parametrize("subject", chosen, ids=str)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*features): only for subjects that have these features")


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def service(emulator: Emulator, subject: Subject) -> Iterator[Service]:
    emulator.reset()
    yield Service(emulator, subject)
    emulator.reset()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found
