"""The standard suite for text models over `CerebrasLLM`, and over one of langchain-core: it knows no integration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models.fake import FakeStreamingListLLM
from langchain_core.language_models.llms import BaseLLM

from cerebras_ext.emulator import Emulator
from langchain_cerebras_ext.llm import CerebrasLLM
from langchain_cerebras_ext.serialization import LOAD_OPTIONS
from tests.langchain.llm_suite import LLMIntegrationTests, LLMTests, LLMUnitTests

KEY = "csk-PLANTED-0123456789"


class OfCerebras(LLMTests):
    emulator: Emulator

    @pytest.fixture(autouse=True, scope="class")
    def _emulator(self, request: pytest.FixtureRequest) -> Iterator[None]:
        with Emulator() as emulator:
            request.cls.emulator = emulator
            yield

    @property
    def llm_class(self) -> type[BaseLLM]:
        return CerebrasLLM

    @property
    def llm_params(self) -> dict[str, Any]:
        return {"model": "gpt-oss-120b", "api_key": KEY, "base_url": self.emulator.base_url, "max_tokens": 60}

    @property
    def secret(self) -> str | None:
        return KEY

    @property
    def model_override(self) -> str:
        return "qwen-3.8-27b"

    @property
    def load_options(self) -> dict[str, Any] | None:
        return {**LOAD_OPTIONS, "secrets_map": {"CEREBRAS_API_KEY": KEY}}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return (
            {"CEREBRAS_API_KEY": KEY, "CEREBRAS_BASE_URL": "https://u.example/v1"},
            {"model": "m"},
            {"api_key": KEY, "base_url": "https://u.example"},
        )


class TestCerebrasUnit(OfCerebras, LLMUnitTests):
    """Without requests."""


class TestCerebrasIntegration(OfCerebras, LLMIntegrationTests):
    """Over the emulator."""

    @property
    def is_deterministic(self) -> bool:
        return True


class OfCore(LLMTests):
    @property
    def tells_tokens(self) -> bool:
        return False

    @property
    def tells_finish_reason(self) -> bool:
        return False

    @property
    def llm_class(self) -> type[BaseLLM]:
        return FakeStreamingListLLM

    @property
    def llm_params(self) -> dict[str, Any]:
        return {"responses": ["An answer in words."]}

    @property
    def returns_usage(self) -> bool:
        return False

    @property
    def accepts_model(self) -> bool:
        return False

    @property
    def accepts_stop(self) -> bool:
        return False


class TestCoreUnit(OfCore, LLMUnitTests):
    """Without requests."""


class TestCoreIntegration(OfCore, LLMIntegrationTests):
    """Over its canned answers."""
