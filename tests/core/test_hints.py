"""Advice on refusals whose own text does not say what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext import Client
from cerebras_ext.errors import APIStatusError, NotFoundError
from cerebras_ext.hints import hint_for, history_fault
from cerebras_ext.types import ErrorBody
from tests.support import MESSAGES, STREAMS, WAYS, Answer, Server, Way


def refused(server: Server, options: dict[str, Any], status: int, body: Any, **fields: Any) -> APIStatusError:
    server.script = [Answer((body if isinstance(body, bytes) else json.dumps(body).encode(),), status)]
    with pytest.raises(APIStatusError) as caught:
        Client(**options, max_retries=0).chat(**{"model": "m", "messages": MESSAGES, **fields})
    assert caught.value.hint is None or caught.value.hint in str(caught.value)
    return caught.value


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("code", ["model_not_found", "model_archived"])
def test_a_retired_model_is_named_with_where_to_look(
    server: Server, options: dict[str, Any], way: Way, code: str
) -> None:
    message = "Model old-model does not exist or you do not have access to it."
    server.script = [Answer((json.dumps({"message": message, "param": "model", "code": code}).encode(),), 404)]
    with pytest.raises(NotFoundError) as caught:
        way.ask(options, model="old-model")
    assert len(server.requests) == 1
    assert caught.value.message == message
    assert "'old-model'" in str(caught.value)
    assert "/v1/models" in str(caught.value)


CALLS = {
    "role": "assistant",
    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "content": "7", "tool_call_id": "t1"}
USER = {"role": "user", "content": "q"}


@pytest.mark.parametrize(
    ("messages", "index", "call_id"),
    [
        ([USER, {**RESULT, "tool_call_id": "gone"}, USER], 1, "gone"),
        ([RESULT], 0, "t1"),
        ([USER, CALLS, USER], 1, "t1"),
        ([USER, CALLS], 1, "t1"),
        ([CALLS, RESULT, RESULT], 2, "t1"),
        ([CALLS, USER, RESULT], 0, "t1"),
    ],
)
@pytest.mark.parametrize("body", [b"", b"{}", {"message": "bad"}, b"<html>400</html>"])
def test_a_broken_tool_history_is_named_with_its_index(
    server: Server, options: dict[str, Any], messages: list[Any], index: int, call_id: str, body: Any
) -> None:
    error = refused(server, options, 400, body, messages=messages)
    assert f"message {index} " in str(error)
    assert repr(call_id) in str(error)


@pytest.mark.parametrize(
    "messages", [[USER], [USER, CALLS, RESULT], [CALLS, RESULT, CALLS, RESULT, USER], None, "x", [None]]
)
def test_a_whole_history_is_not_complained_about(messages: Any) -> None:
    assert history_fault(messages) is None


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}}


def test_tools_with_a_response_format_are_explained(server: Server, options: dict[str, Any]) -> None:
    body = {"message": '"tools" is incompatible with "response_format"', "code": "wrong_api_format"}
    error = refused(server, options, 400, body, tools=[TOOL], response_format=SCHEMA)
    assert server.requests[0].json["tools"]
    assert server.requests[0].json["response_format"] == SCHEMA
    assert "refuses tools together with response_format" in str(error)


@pytest.mark.parametrize("kind", [SCHEMA, {"type": "json_object"}], ids=["json_schema", "json_object"])
def test_a_model_without_the_format_names_the_format(
    server: Server, options: dict[str, Any], kind: dict[str, Any]
) -> None:
    body = {"message": "type: Input should be 'text'", "param": "validation_error", "code": "wrong_api_format"}
    error = refused(server, options, 400, body, response_format=kind)
    assert repr(kind["type"]) in str(error)


def test_a_refused_forced_choice_points_to_json_schema(server: Server, options: dict[str, Any]) -> None:
    body = {"message": "Expected auto or none", "param": "tool_choice"}
    error = refused(server, options, 400, body, tools=[TOOL], tool_choice="required")
    assert server.requests[0].json["tool_choice"] == "required"
    assert len(server.requests) == 1
    assert "json_schema" in str(error)


def test_a_refused_schema_points_to_the_dialect(server: Server, options: dict[str, Any]) -> None:
    body = {"message": "Invalid fields for schema with types ['string']: {'format'}", "param": "response_format"}
    assert "strict_schema" in str(refused(server, options, 400, body, response_format=SCHEMA))


def image(url: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]


def test_an_image_by_url_is_told_to_be_a_data_uri(server: Server, options: dict[str, Any]) -> None:
    assert "data URI" in str(refused(server, options, 400, b"", messages=image("https://e.org/x.png")))
    assert server.requests[0].json["messages"] == image("https://e.org/x.png")
    body = {"message": "Content type 'image_url' is not supported by selected model"}
    assert "does not read images" in str(
        refused(server, options, 400, body, messages=image("data:image/png;base64,aGk="))
    )


def test_a_wrong_key_says_where_keys_are_made(server: Server, options: dict[str, Any]) -> None:
    assert "cloud.cerebras.ai" in str(refused(server, options, 401, {"message": "Wrong API Key"}))


@pytest.mark.parametrize("status", [402, 403, 408, 409, 413, 429, 500, 503])
def test_other_refusals_get_no_advice(status: int) -> None:
    assert hint_for(status, ErrorBody(message="x"), {"messages": [RESULT]}) is None


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_hints_come_on_streams_too(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((b'{"message":"Wrong API Key"}',), 401)]
    with pytest.raises(APIStatusError, match=r"cloud\.cerebras\.ai"):
        way.ask(options)
