"""The method that is called decides whether an answer is streamed, and options of a call are checked by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.errors import RequestValidationError
from cerebras_ext.types import ChatRequest, CompletionRequest
from tests.support import STREAMS, WAYS, Server, Way


def ask(way: Way, options: dict[str, Any], request: Any) -> None:
    """Ask with a whole request in place of keywords."""
    name = ("stream_" if way.stream else "") + ("chat" if way.endpoint == "chat" else "complete")
    client: Any = (AsyncClient if way.is_async else Client)(**options)
    answer = getattr(client, name)(request)
    if way.is_async and not way.stream:
        asyncio.run(answer)


def as_model(way: Way, fields: dict[str, Any]) -> Any:
    return (ChatRequest if way.endpoint == "chat" else CompletionRequest)(**fields)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("form", [as_model, lambda way, fields: fields], ids=["model", "mapping"])
def test_a_stream_field_that_the_method_does_not_do_is_refused(
    server: Server, options: dict[str, Any], way: Way, form: Callable[[Way, dict[str, Any]], Any]
) -> None:
    method = "chat" if way.endpoint == "chat" else "complete"
    wanted = method if way.stream else f"stream_{method}"
    fields = {**way.fields, "stream": not way.stream}
    with pytest.raises(RequestValidationError, match=f"^stream: .* call {wanted}$"):
        way.ask(options, stream=not way.stream)
    with pytest.raises(RequestValidationError, match=f"^stream: .* call {wanted}$"):
        ask(way, options, form(way, fields))
    assert not server.requests


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_stream_field_that_says_what_the_method_does_is_taken(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [way.answer()]
    assert way.ask(options, stream=way.stream).response.text == "ok"
    assert server.requests[0].json.get("stream", False) is way.stream


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_a_single_answer_in_place_of_a_stream_takes_the_field(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [Way(way.endpoint, False, way.is_async).answer()]
    assert way.ask(options, stream=True, n=2, unstreamable="single").response.text == "ok"
    assert "stream" not in server.requests[0].json


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("bad", [{"timeout": "abc"}, {"timeout": 0}, {"queue_threshold": 49}], ids=str)
def test_a_bad_option_of_a_call_is_an_error_of_the_request(
    server: Server, options: dict[str, Any], way: Way, bad: dict[str, Any]
) -> None:
    with pytest.raises(RequestValidationError, match=f"^{next(iter(bad))}: must be"):
        way.ask(options, **bad)
    assert not server.requests
