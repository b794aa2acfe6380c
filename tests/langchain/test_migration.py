"""The table for those who come from another class: it is complete, and every line of it is true."""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from langchain_cerebras_ext import ChatCerebras

PAGE = Path(__file__).resolve().parents[2] / "docs" / "langchain.md"

# Fields (and their aliases) that the classes add to BaseChatModel: langchain-openai 1.7.4, langchain-cerebras 0.8.2.
CHAT_OPENAI = {
    "api_key", "async_client", "base_url", "client", "context_management", "default_headers", "default_query",
    "disabled_params", "extra_body", "frequency_penalty", "http_async_client", "http_client", "http_socket_options",
    "include", "include_response_headers", "logit_bias", "logprobs", "max_completion_tokens", "max_retries",
    "max_tokens", "model", "model_kwargs", "model_name", "n", "openai_api_base", "openai_api_key",
    "openai_organization", "openai_proxy", "organization", "presence_penalty", "prompt_cache_options", "reasoning",
    "reasoning_effort", "request_timeout", "root_async_client", "root_client", "seed", "service_tier", "stop",
    "stop_sequences", "store", "stream_chunk_timeout", "stream_usage", "streaming", "temperature",
    "tiktoken_model_name", "timeout", "top_logprobs", "top_p", "truncation", "use_previous_response_id",
    "use_responses_api", "verbosity",
}  # fmt: skip
CHAT_CEREBRAS = {"cerebras_api_base", "cerebras_api_key", "cerebras_proxy", "disable_reasoning"}
VALUES: dict[str, Any] = {
    "api_key": "k", "base_url": "https://u.example", "default_headers": {"a": "b"}, "disable_reasoning": True,
    "extra_body": {"x": 1}, "frequency_penalty": 0.5, "include_response_headers": True, "logit_bias": {"5": 1.0},
    "logprobs": True, "max_retries": 1, "max_tokens": 5, "model": "m", "model_kwargs": {"x": 1}, "n": 1,
    "presence_penalty": 0.5, "proxy": "http://proxy.example:1", "reasoning_effort": "low", "seed": 1,
    "service_tier": "flex", "stop": ["x"], "streaming": True, "temperature": 0.5, "timeout": 3.0, "top_logprobs": 2,
    "top_p": 0.5,
}  # fmt: skip


def table() -> dict[str, str]:
    """What the page says to each keyword."""
    if not PAGE.exists():
        pytest.skip("the documentation is beside the tests in a checkout only")
    section = PAGE.read_text(encoding="utf-8").partition("## Coming from another class")[2]
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", section, re.MULTILINE)
    return {name: meaning for names, meaning in rows for name in re.findall(r"`(\w+)`", names)}


@pytest.mark.once
def test_table_has_every_keyword_of_both_classes() -> None:
    assert table().keys() == CHAT_OPENAI | CHAT_CEREBRAS


@pytest.mark.once
@pytest.mark.parametrize("name", sorted(CHAT_OPENAI | CHAT_CEREBRAS))
def test_line_of_the_table_is_true(name: str) -> None:
    meaning = table()[name]
    given: dict[str, Any] = {"model": "m", "api_key": "k", "logprobs": True}
    if meaning.startswith("warns and is dropped"):
        with pytest.warns(UserWarning, match=name):
            model = ChatCerebras(**given, **{name: "x"})
        assert model.model_kwargs == {}
        for other in re.findall(r"`(\w+)`", meaning):
            assert other in ChatCerebras.model_fields
        return
    if name == "disable_reasoning":
        with pytest.warns(DeprecationWarning, match="reasoning_effort"):
            assert ChatCerebras(**given, disable_reasoning=True).reasoning_effort == "none"
        return
    field = name if meaning == "the same" else meaning.strip("`")
    if name in ("http_client", "http_async_client"):
        assert field in ChatCerebras.model_fields
        return
    given.pop(field, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ChatCerebras(**given, **{name: VALUES[field]})
    value = getattr(model, field)
    assert getattr(value, "get_secret_value", lambda: value)() == VALUES[field]


@pytest.mark.once
@pytest.mark.parametrize(
    ("package", "known"),
    [("langchain_openai", CHAT_OPENAI), ("langchain_cerebras", CHAT_OPENAI | CHAT_CEREBRAS)],
)
def test_lists_are_those_of_the_installed_classes(package: str, known: set[str]) -> None:
    """The peers are no dependency of the tests; where they are installed, the lists are held against them."""
    peer = pytest.importorskip(package, reason="the peers are no dependency of the tests")
    cls = peer.ChatOpenAI if package == "langchain_openai" else peer.ChatCerebras
    ours = importlib.import_module("langchain_core.language_models").BaseChatModel.model_fields
    fields = {name: field for name, field in cls.model_fields.items() if name not in ours}
    names = set(fields) | {field.alias for field in fields.values() if field.alias}

    assert names - known == set()
