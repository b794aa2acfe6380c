"""Every field of both endpoints reaches the wire on every way of asking, and the typed keywords are these fields."""

from __future__ import annotations

import importlib.util
import typing
from typing import Any

import pytest

from cerebras_ext import ChatRequest, CompletionRequest
from cerebras_ext.keywords import CallOptions, ChatKeywords, ClientOptions, CompletionKeywords
from cerebras_ext.settings import Settings, SettingsOptions, resolve_settings
from tests.support import WAYS, Server, Way

TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": True},
}
MESSAGES = [
    {"role": "system", "content": "s", "name": "a"},
    {"role": "developer", "content": [{"type": "text", "text": "d"}], "name": "b"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
            {"type": "image", "image": "data:image/png;base64,aGk="},
        ],
        "name": "c",
    },
    {
        "role": "assistant",
        "content": "x",
        "name": "d",
        "reasoning": "r",
        "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}, "index": 0}],
    },
    {"role": "tool", "content": "7", "tool_call_id": "t", "name": "f"},
    {"role": "assistant", "content": [{"type": "text", "text": "t"}], "reasoning": [{"type": "text", "text": "r"}]},
]
SHARED: dict[str, Any] = {
    "model": "m-2",
    "frequency_penalty": -2.0,
    "logit_bias": {"5": -100.0},
    "min_tokens": -1,
    "n": 1,
    "presence_penalty": 2.0,
    "prompt_cache_key": "k" * 1024,
    "reasoning_format": "text_parsed",
    "seed": 2**63,
    "stop": ["a", "b", "c", "d"],
    "stream_options": {"include_usage": True},
    "temperature": 0.0,
    "top_p": 1.0,
    "user": "u",
}
CHAT: dict[str, Any] = {
    **SHARED,
    "messages": MESSAGES,
    "clear_thinking": False,
    "disable_reasoning": True,
    "logprobs": True,
    "max_completion_tokens": -1,
    "min_completion_tokens": 0,
    "model_parameters": {"a": [None, 1]},
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": [{"type": "text", "text": "p"}]},
    "reasoning_effort": "none",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "description": "d", "schema": {"type": "object"}, "strict": False},
    },
    "service_tier": "flex",
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "tools": [TOOL],
    "top_logprobs": 20,
}
COMPLETION: dict[str, Any] = {
    **SHARED,
    "prompt": [[1, 2], [3]],
    "best_of": 20,
    "echo": True,
    "grammar_root": "g",
    "logprobs": 20,
    "max_tokens": 0,
    "return_raw_tokens": False,
    "suffix": "s",
}
NOT_SENT = {"stream", "extra_body"}


def test_the_tables_hold_every_field() -> None:
    assert set(CHAT) | NOT_SENT | {"max_tokens"} == set(ChatRequest.model_fields)
    assert set(COMPLETION) | NOT_SENT == set(CompletionRequest.model_fields)


def cases() -> list[Any]:
    return [
        pytest.param(way, name, id=f"{way}-{name}")
        for way in WAYS
        for name in (CHAT if way.endpoint == "chat" else COMPLETION)
        if name != "prompt" and not (way.stream and name == "best_of")  # more than one answer; not to be streamed
    ]


@pytest.mark.parametrize(("way", "name"), cases())
def test_every_field_reaches_the_wire_with_its_value(
    server: Server, options: dict[str, Any], way: Way, name: str
) -> None:
    table = CHAT if way.endpoint == "chat" else COMPLETION
    partners = {"top_logprobs": "logprobs", "tool_choice": "tools", "parallel_tool_calls": "tools"}
    fields = {key: table[key] for key in (name, partners.get(name, name))}
    server.script = [way.answer()]
    way.ask(options, **fields)
    (received,) = server.requests
    expected = {**way.fields, **fields, **({"stream": True} if way.stream else {})}
    if not way.stream:
        expected.pop("stream_options", None)
    assert (received.path, received.json) == (way.path, expected)


def test_prompts_of_every_form_reach_the_wire(server: Server, options: dict[str, Any]) -> None:
    whole = next(way for way in WAYS if way.endpoint == "completion")
    server.script = [whole.answer()]
    prompts = ["q", ["a", "b"], [1, 2], [[1, 2], [3]], ""]
    for prompt in prompts:
        whole.ask(options, prompt=prompt)
    assert [received.json["prompt"] for received in server.requests] == prompts


@pytest.mark.parametrize("tool_choice", ["none", "auto", "required"])
@pytest.mark.parametrize("effort", ["none", "low", "medium", "high"])
def test_every_value_of_the_choices_reaches_the_wire(
    server: Server, options: dict[str, Any], tool_choice: str, effort: str
) -> None:
    server.script = [WAYS[0].answer()]
    WAYS[0].ask(options, tool_choice=tool_choice, tools=[TOOL], reasoning_effort=effort, stop="x")
    body = server.requests[0].json
    assert (body["tool_choice"], body["reasoning_effort"], body["stop"]) == (tool_choice, effort, "x")


# ---- the typed keywords ----


@pytest.mark.parametrize(("keywords", "model"), [(ChatKeywords, ChatRequest), (CompletionKeywords, CompletionRequest)])
def test_typed_keywords_are_the_fields_and_the_options_of_a_call(keywords: Any, model: Any) -> None:
    assert set(typing.get_type_hints(keywords)) == set(model.model_fields) | set(typing.get_type_hints(CallOptions))


def test_typed_settings_are_what_settings_are_made_of() -> None:
    assert set(typing.get_type_hints(ClientOptions)) == {
        *typing.get_type_hints(SettingsOptions),
        "api_key",
        "error_types",
    }
    changed = {
        "base_url": "http://h:1",
        "timeout": 3.0,
        "max_retries": 5,
        "max_retry_wait": 7.0,
        "default_headers": {"a": "b"},
        "proxy": "http://p:1",
        "verify": False,
        "coalesce": True,
        "transport": "httptools",
        "http2": True,
        "payload": "gzip",
        "queue_threshold": 60,
        "stream_idle_timeout": 4.0,
    }
    assert set(changed) == set(typing.get_type_hints(SettingsOptions))
    if importlib.util.find_spec("httptools") is None:
        del changed["transport"]
    default = resolve_settings()
    for name, value in changed.items():
        made = resolve_settings(**{name: value})  # type: ignore[arg-type]
        assert isinstance(made, Settings)
        assert made != default, name
        assert made == resolve_settings(**{name: value})  # type: ignore[arg-type]
        assert resolve_settings(**{name: None}) == default
    with pytest.raises(TypeError, match="unknown setting 'time_out'; did you mean 'timeout'"):
        resolve_settings(time_out=3)  # type: ignore[call-arg]
