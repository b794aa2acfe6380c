"""langchain-tests' standard suites for the chat model; the requests of the second are replayed from cassettes."""

from __future__ import annotations

import base64
import importlib
import itertools
import uuid
from types import SimpleNamespace
from typing import Any, Literal

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.serialization import IMPORT_MAPPINGS
from tests.replay.cassettes import service_key, service_url

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed with the lowest versions")

from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
MODEL = "qwen-3.8-27b"
"""The public model that has tools, reasoning and images."""


class TestUnit(ChatModelUnitTests):
    """Without requests."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatCerebras

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODEL, "api_key": "csk-test", "base_url": "https://api.cerebras.ai"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return (
            {"CEREBRAS_API_KEY": "csk-of-the-environment", "CEREBRAS_BASE_URL": "https://u.example/v1"},
            {"model": MODEL},
            {"api_key": "csk-of-the-environment", "base_url": "https://u.example"},
        )

    @pytest.fixture(autouse=True)
    def _listed_by_core(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put our classes into the table that core's loader takes for "all": the suite cannot name another one."""
        loader = importlib.import_module("langchain_core.load.load")  # `load` of the package is the function
        monkeypatch.setattr(
            loader, "ALL_SERIALIZABLE_MAPPINGS", {**loader.ALL_SERIALIZABLE_MAPPINGS, **IMPORT_MAPPINGS}
        )
        monkeypatch.setattr(loader, "_default_class_paths_cache", {})


@pytest.mark.vcr
class TestIntegration(ChatModelIntegrationTests):
    """Over cassettes."""

    @pytest.fixture
    def vcr_config(self, request: pytest.FixtureRequest, vcr_config: dict[str, Any]) -> dict[str, Any]:
        """Let only the test that measures a stream replay an answer more than once."""
        return {**vcr_config, "allow_playback_repeats": request.node.name == "test_stream_time"}

    @pytest.fixture(autouse=True)
    def _same_ids_in_each_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """core gives example tool calls random ids, which a recorded request cannot match."""
        numbers = itertools.count(1)
        module = SimpleNamespace(uuid4=lambda: uuid.UUID(int=next(numbers)), UUID=uuid.UUID)
        monkeypatch.setattr("langchain_core.utils.function_calling.uuid", module)

    @pytest.fixture(autouse=True)
    def _pictures_without_a_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The suite downloads the pictures that it sends."""
        picture = httpx.Response(200, content=PIXEL, headers={"content-type": "image/png"})
        monkeypatch.setattr(httpx, "get", lambda *args, **kwargs: picture)

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatCerebras

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODEL, "api_key": service_key(), "base_url": service_url()}

    @property
    def enable_vcr_tests(self) -> bool:
        return True

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {**super().standard_chat_model_params, "max_tokens": 500}  # reasoning counts too

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return "gpt-oss-120b"

    @property
    def supported_usage_metadata_details(self) -> dict[Literal["invoke", "stream"], list[Any]]:
        details = ["reasoning_output", "cache_read_input"]
        return {"invoke": details, "stream": details}

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        return self._ask(self._fresh(reasoning_effort="high"), "Why is the sky blue?", stream=stream)

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        long = "The quick brown fox jumps over the lazy dog. " * 200
        model = self._fresh()
        model.invoke(long)
        return self._ask(model, long, stream=stream)

    def _fresh(self, **fields: Any) -> ChatCerebras:
        return ChatCerebras(**{**self.standard_chat_model_params, **self.chat_model_params, **fields})

    @staticmethod
    def _ask(model: ChatCerebras, prompt: str, *, stream: bool) -> AIMessage:
        if not stream:
            return model.invoke(prompt)
        chunks = iter(model.stream(prompt))
        whole = next(chunks)
        for chunk in chunks:
            whole += chunk
        return whole
