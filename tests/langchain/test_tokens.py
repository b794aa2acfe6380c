"""Token counts: offline, for any model, an estimate that is near the service's own counts."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.tools import tool

from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.llm import CerebrasLLM
from langchain_cerebras_ext.tokens import IMAGE_TOKENS, count_messages, estimate_tokens
from tests.conformance import recordings


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("counting tokens opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def models(**fields: Any) -> list[Any]:
    return [cls(model="brand-new-1", api_key="k", **fields) for cls in (ChatCerebras, CerebrasLLM)]


def image(data: str) -> HumanMessage:
    return HumanMessage([{"type": "image_url", "image_url": {"url": data}}])


def test_counting_works_offline_for_any_model_and_never_fetches_an_image() -> None:
    for model in models():
        assert model.get_num_tokens("four little words here") == 4
        assert model.get_num_tokens_from_messages([image("http://127.0.0.1:1/x.png")]) > 0
        assert model.get_num_tokens("") == 0


def test_image_costs_the_same_whatever_its_size() -> None:
    small, large = image(f"data:image/png;base64,{'A' * 1_000}"), image(f"data:image/png;base64,{'A' * 1_000_000}")
    other = HumanMessage([{"type": "image", "base64": "A" * 5_000, "mime_type": "image/png"}])

    assert count_messages([small]) == count_messages([large]) == count_messages([other])
    assert count_messages([small]) >= IMAGE_TOKENS


def test_tokenizer_of_the_user_is_used_everywhere() -> None:
    for model in models(custom_get_token_ids=lambda text: [ord(letter) for letter in text]):
        assert model.get_token_ids("ab") == [97, 98]
        assert model.get_num_tokens("four") == 4
        one, two = (model.get_num_tokens_from_messages([HumanMessage(text)]) for text in ("x", "x" * 101))
        assert two - one == 100


def test_ids_without_a_tokenizer_are_refused_not_invented() -> None:
    for model in models():
        with pytest.raises(NotImplementedError, match="custom_get_token_ids"):
            model.get_token_ids("text")


@tool
def weather(city: str) -> str:
    """Tell the weather of a city, in a sentence or two."""
    return city


@pytest.mark.parametrize(
    "more",
    [
        SystemMessage("and more words"),
        AIMessage("", tool_calls=[{"id": "1", "name": "weather", "args": {"city": "Paris"}}]),
        AIMessage("", additional_kwargs={"reasoning_content": "let me think"}),
        AIMessage("", invalid_tool_calls=[{"id": "1", "name": "f", "args": '{"a": ', "error": "e"}]),
        ToolMessage("sunny", tool_call_id="1"),
        HumanMessage("x", name="alice"),
        HumanMessage(["plain", {"type": "text", "text": "block"}]),
        AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "so"}]),
    ],
    ids=lambda message: type(message).__name__,
)
def test_everything_in_a_message_counts(more: BaseMessage) -> None:
    first = [HumanMessage("hello there")]

    assert count_messages([*first, more]) > count_messages([*first, type(more)("", **_ids(more))])


def _ids(message: BaseMessage) -> dict[str, Any]:
    return {"tool_call_id": ""} if isinstance(message, ToolMessage) else {}


def test_tools_count_in_every_form() -> None:
    (model, _) = models()
    messages = [HumanMessage("hello")]
    schema = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}

    bare = model.get_num_tokens_from_messages(messages)
    assert model.get_num_tokens_from_messages(messages, tools=[weather]) > bare + 20
    assert model.get_num_tokens_from_messages(messages, tools=[schema, weather]) > bare + 40
    assert model.get_num_tokens_from_messages(messages, tools=[]) == bare


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The quick brown fox jumps over the lazy dog.", 9, 12),
        ("internationalization", 2, 5),
        ("1234567", 3, 4),
        ("def f(x):\n    return x + 1\n", 9, 18),
        ("今日はとても良い天気ですね", 6, 16),
        ("🦜🔗", 2, 8),
        (" " * 500, 0, 5),
        ("\ud83e", 1, 3),
    ],
)
def test_estimates_of_text(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


@pytest.mark.recordings
def test_estimates_are_near_what_the_service_counted() -> None:
    """Without tools and schemas; templates add from 3 to about 70 tokens, which differ by model."""
    shares = []
    for number in recordings.numbers():
        exchange = recordings.load(number)
        request = (exchange["request"] or {}).get("json") or {}
        usage = _usage(exchange)
        if not request.get("messages") or not usage or "tools" in request or "response_format" in request:
            continue
        messages = convert_to_messages([{**message, "content": message.get("content") or ""} for message in
                                        request["messages"]])  # fmt: skip
        shares.append((count_messages(messages), usage["prompt_tokens"]))
    assert len(shares) > 30
    assert [(guess, real) for guess, real in shares if not real - 75 <= guess <= real * 1.35 + 5] == []


def _usage(exchange: dict[str, Any]) -> dict[str, Any] | None:
    if exchange["response"]["status"] != 200:
        return None
    if recordings.is_stream(exchange):
        return recordings.events(exchange)[-1].get("usage")
    usage: dict[str, Any] | None = json.loads(recordings.body(exchange)).get("usage")
    return usage
