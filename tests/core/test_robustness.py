"""Whatever the service sends, the library answers with its result or one of its errors, and never crashes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from cerebras_ext import Client
from cerebras_ext.assembly import ChatDelta, deltas_of_chat, deltas_of_completion
from cerebras_ext.classify import status_error
from cerebras_ext.endpoints import CHAT, COMPLETION, Endpoint
from cerebras_ext.errors import CerebrasError
from cerebras_ext.exchange import Options, prepare, read_response
from cerebras_ext.ratelimit import RateLimits, safe_headers
from cerebras_ext.settings import resolve_settings
from cerebras_ext.stream_state import StreamState

pytestmark = pytest.mark.once

WORDS = """id choices index delta message content reasoning reasoning_content tool_calls function name arguments
    finish_reason logprobs usage error status_code text tokens code detail type param role model created new
    total_tokens top_logprobs time_info"""
NAMES = st.sampled_from(WORDS.split())
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(["stop", "0", "[DONE]"]),
    st.integers(0, 2),
)  # fmt: skip
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=25
)


def field(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is expected, sometimes anything."""
    return st.integers(0, 15).flatmap(lambda number: JSON if number == 7 else value)


def record(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={name: field(value) for name, value in members.items()})


TEXT = st.text(max_size=4) | st.none()
CALL = record(index=st.integers(0, 2), id=TEXT, type=st.just("function"), function=record(name=TEXT, arguments=TEXT))
PART = record(content=TEXT, reasoning=TEXT, role=TEXT, tool_calls=st.lists(field(CALL), max_size=2))
CHOICE = record(
    index=st.integers(0, 1), delta=PART, message=PART, text=TEXT, tokens=st.lists(st.integers(), max_size=2),
    finish_reason=st.sampled_from(["stop", "length", None]), logprobs=record(content=JSON, tokens=JSON, refusal=JSON),
)  # fmt: skip
USAGE = record(total_tokens=st.integers() | st.none(), queue_time=st.none())
ERROR = st.none() | st.none() | record(message=TEXT)
ANSWER = field(
    record(
        id=TEXT,
        choices=st.lists(field(CHOICE), max_size=3),
        usage=USAGE,
        time_info=USAGE,
        error=ERROR,
        status_code=JSON,
    )
)
END = {"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": "stop"}]}
CALLED = prepare(resolve_settings(), SecretStr("k" * 20), "POST", "/", Options(), {}, stream=True)
ENDPOINTS = pytest.mark.parametrize("endpoint", [CHAT, COMPLETION], ids=lambda endpoint: endpoint.path)


def check_delta(delta: Any) -> None:
    text = [delta.content, delta.reasoning] if isinstance(delta, ChatDelta) else [delta.text]
    assert all(isinstance(piece, str) for piece in text)
    assert delta.finish_reason is None or isinstance(delta.finish_reason, str)
    assert isinstance(delta.index, int)
    for call in delta.tool_calls if isinstance(delta, ChatDelta) else ():
        assert (type(call.index), type(call.arguments)) == (int, str)
        assert call.id is None or isinstance(call.id, str)
        assert call.name is None or isinstance(call.name, str)


@ENDPOINTS
def test_any_stream_is_read_or_refused(endpoint: Endpoint[Any, Any, Any]) -> None:
    outcomes = {"read": 0, "refused": 0}

    @settings(max_examples=120, deadline=None)
    @given(events=st.lists(ANSWER, max_size=5))
    def check(events: list[Any]) -> None:
        state = StreamState(endpoint, CALLED, httpx.Headers(), None, None)
        try:
            for event in [*events, END]:
                for delta in state.feed(b"data: " + json.dumps(event).encode() + b"\n\n"):
                    check_delta(delta)
            state.finish()
            state.check_complete()
            response = state.response()
        except CerebrasError:
            outcomes["refused"] += 1
        else:
            outcomes["read"] += 1
            json.dumps(response.to_dict())

    check()
    assert min(outcomes.values()) > 10, outcomes


@ENDPOINTS
@settings(max_examples=120, deadline=None)
@given(answer=ANSWER)
def test_any_answer_is_read_or_refused(endpoint: Endpoint[Any, Any, Any], answer: Any) -> None:
    try:
        response = read_response(endpoint, json.dumps(answer).encode(), CALLED, httpx.Headers(), None)
    except CerebrasError:
        return
    split: Any = deltas_of_chat if endpoint is CHAT else deltas_of_completion
    for delta in split(response):
        check_delta(delta)


@settings(max_examples=120, deadline=None)
@given(
    status=st.integers(100, 599), body=JSON, request=st.none() | st.dictionaries(NAMES, JSON, max_size=3), messages=JSON
)
def test_any_refusal_is_told(status: int, body: Any, request: dict[str, Any] | None, messages: Any) -> None:
    sent = (
        None if request is None else {**request, "messages": messages, "tools": messages, "response_format": messages}
    )
    error = status_error(status, {}, body, request=sent, secret="s" * 20)
    assert str(status) in str(error)
    assert error.status_code == status


@given(
    st.dictionaries(
        st.sampled_from(["x-ratelimit-limit-tokens-day", "retry-after", "retry-after-ms", "cf-ray"]), st.text()
    )
)
def test_any_header_is_read(headers: dict[str, str]) -> None:
    status_error(429, headers, {})
    RateLimits.from_headers(safe_headers(headers.items()))


@settings(max_examples=100, deadline=None)
@given(
    data=st.binary(max_size=60)
    | st.lists(
        st.sampled_from([b"data: ", b"\n", b"\r", b"{", b"}", b"[DONE]", b'"error"', b"\xff", b"event: error", b":"])
    ).map(b"".join)
)
def test_any_bytes_are_a_stream_or_refused(data: bytes) -> None:
    state = StreamState(CHAT, CALLED, httpx.Headers(), None, None)
    try:
        state.feed(data)
        state.finish()
    except CerebrasError:
        return


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed_and_the_key_goes_nowhere_else(status: int) -> None:
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(status, headers={"location": "https://elsewhere.example/v1/models"})

    with httpx.Client(transport=httpx.MockTransport(handler)) as http, pytest.raises(CerebrasError, match=str(status)):
        Client(api_key="k", http_client=http).models()
    assert seen == ["https://api.cerebras.ai/v1/models"]
