"""The suite can be pointed at another integration."""

from __future__ import annotations

import pytest
from llama_index.core.llms.mock import MockLLM

from tests.llamaindex.conformance import subjects as module
from tests.llamaindex.conformance.subjects import OURS, VARIABLE, Subject, subjects

OTHERS = [Subject(MockLLM, "text")]


def test_our_classes_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert subjects() is OURS
    assert {subject.endpoint for subject in OURS} == {"chat", "text"}


def test_the_environment_names_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OTHERS", OTHERS, raising=False)
    monkeypatch.setenv(VARIABLE, f"{module.__name__}:OTHERS")
    assert subjects() is OTHERS
