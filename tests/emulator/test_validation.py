"""Requests that the service refuses, with its status, code, param and words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext.emulator import Emulator
from tests.emulator.support import CHAT, COMPLETIONS, MODEL, chat_body, post, user

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
ANSWER = {"role": "tool", "tool_call_id": "1", "content": "x"}
JSON_OBJECT = {"type": "json_object"}


def refusal(emulator: Emulator, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    answer = post(emulator, path, body, headers)
    assert "x-request-id" not in answer.headers
    assert not any(name.startswith("x-ratelimit") or name == "inference-id" for name in answer.headers)
    body = answer.json()
    assert set(body) == {"message", "type", "param", "code"}
    return answer.status_code, body


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (chat_body("x", store=True), ["store"]),
        (chat_body("x", top_k=1, min_p=0.1), ["top_k", "min_p"]),
        (chat_body("x", extra_body={}), ["extra_body"]),
        (chat_body("x", stream=True, stream_options={"x": 1}), ["stream_options.x"]),
        (
            chat_body([*user("x"), {"role": "assistant", "content": "y", "reasoning_content": "z"}]),
            ["messages.1.assistant.reasoning_content"],
        ),
        (chat_body([{"role": "user", "content": "x", "cache_control": {}}]), ["messages.0.user.cache_control"]),
        (
            chat_body([{"role": "user", "content": [{"type": "text", "text": "x", "extra": 1}]}]),
            ["messages.0.user.content.0.text.extra"],
        ),
        (chat_body("x", tools=[{**TOOL, "cache": 1}]), ["tools.0.cache"]),
    ],
)
def test_unknown_members_are_named_by_their_path(emu: Emulator, body: Any, paths: list[str]) -> None:
    status, error = refusal(emu, CHAT, body)
    assert status == 400
    assert error["message"] == "\n".join(f"{path}: property '{path}' is unsupported" for path in paths)
    assert (error["type"], error["param"], error["code"]) == (
        "invalid_request_error", "validation_error", "wrong_api_format",
    )  # fmt: skip


@pytest.mark.parametrize("field", ["max_completion_tokens", "nonsense", "messages", "response_format"])
def test_unknown_members_of_a_completion(emu: Emulator, field: str) -> None:
    status, error = refusal(emu, COMPLETIONS, {"model": MODEL, "prompt": "x", field: 1})
    assert (status, error["message"]) == (400, f"{field}: property '{field}' is unsupported")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 10**9}, "n"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"reasoning_effort": "extreme"}, "reasoning_effort"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages.0"),
        ({"messages": [{"role": "user"}]}, "messages.0.user.content"),
        ({"model": None}, "model"),
        ({"logit_bias": {str(number): 1 for number in range(101)}}, "logit_bias"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools.0.function.name"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.json_schema"),
    ],
)
def test_values_out_of_range(emu: Emulator, fields: dict[str, Any], name: str) -> None:
    status, error = refusal(emu, CHAT, {**chat_body("x"), **fields})
    assert status == 400
    assert name in error["message"]
    assert error["code"] == "wrong_api_format"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tools": [TOOL], "response_format": JSON_OBJECT}, '"tools" is incompatible with "response_format"'),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tools": [], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "'g'"),
        ({"response_format": JSON_OBJECT, "stream": True}, "json_object"),
        ({"response_format": JSON_OBJECT, "reasoning_format": "raw"}, "raw"),
        ({"top_logprobs": 2}, "logprobs"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "max_tokens"),
        (
            {"reasoning_effort": "none"},
            "Unsupported reasoning effort: none. Supported values are 'low', 'medium', and 'high'.",
        ),
        ({"model": "gemma-4-31b", "reasoning_format": "hidden"}, "hidden"),
        (
            {
                "model": "zai-glm-4.7",
                "tools": [TOOL, {"type": "function", "function": {"name": "g", "strict": True}}],
            },
            "Tools with mixed values for 'strict' are not allowed.",
        ),
        ({"messages": [{"role": "user", "content": [PNG]}]}, "Content type 'image_url' is not supported"),
        (
            {
                "model": "qwen-3.8-27b",
                "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y"}}]}],
            },
            "data URIs",
        ),
    ],
)
def test_conflicts(emu: Emulator, fields: dict[str, Any], words: str) -> None:
    status, error = refusal(emu, CHAT, {**chat_body("x"), **fields})
    assert status == 400
    assert words in error["message"]


@pytest.mark.parametrize(
    "messages",
    [
        [*user("x"), {"role": "assistant", "tool_calls": [CALL]}],
        [*user("x"), {"role": "assistant", "tool_calls": [CALL]}, *user("y"), ANSWER],
        [*user("x"), ANSWER],
        [*user("x"), {"role": "assistant", "tool_calls": [CALL, CALL]}, ANSWER, ANSWER],
        [*user("x"), *[{"role": "assistant", "tool_calls": [CALL]}, ANSWER] * 2],
    ],
    ids=["unanswered", "answered too late", "no such call", "same id twice", "id again"],
)
def test_broken_tool_histories(emu: Emulator, messages: list[dict[str, Any]]) -> None:
    assert refusal(emu, CHAT, chat_body(messages))[0] == 400


def test_good_histories_are_taken(emu: Emulator) -> None:
    second = {**CALL, "id": "2", "index": 1}
    history = [
        {"role": "system", "content": [{"type": "text", "text": "s"}], "name": "n"},
        *user("x"),
        {"role": "assistant", "content": None, "reasoning": "r", "tool_calls": [CALL, second]},
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "b"}], "name": "f"},
        ANSWER,
        *user("again"),
    ]
    assert post(emu, CHAT, chat_body(history)).status_code == 200


def test_too_many_images(emu: Emulator) -> None:
    body = {"model": "qwen-3.8-27b", "messages": [{"role": "user", "content": [PNG] * 11}]}
    assert refusal(emu, CHAT, body)[0] == 413
    body["messages"][0]["content"] = [PNG] * 10  # type: ignore[index]
    answer = post(emu, CHAT, body)
    assert answer.json()["usage"]["prompt_tokens_details"]["image_tokens"] > 0


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (b"", {}, 400, ": Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (b"{a}", {}, 400, ": Invalid JSON: key must be a string at line 1 column 2"),
        (b'{"a": NaN}', {}, 400, ": Invalid JSON"),
        (b'{"a": "\\ud83e"}', {}, 400, ": Invalid JSON: lone leading surrogate in hex escape at line 1 column "),
        (b"[1]", {}, 400, "valid object"),
        (b"{}", {}, 400, "model"),
        (b"[" * 100_000, {}, 400, ": Invalid JSON"),
        (b"{}", {"content-type": "text/plain"}, 415, "text/plain"),
        (b"{}", {"content-encoding": "br"}, 415, "br"),
        (b"{}", {"content-encoding": "gzip"}, 400, "gzip"),
        (b"\xc1", {"content-type": "application/msgpack"}, 400, "MessagePack"),
    ],
)
def test_broken_bodies(emu: Emulator, content: bytes, headers: dict[str, str], status: int, words: str) -> None:
    if "msgpack" in headers.get("content-type", ""):
        pytest.importorskip("ormsgpack")
    answer = post(emu, CHAT, content, headers)
    assert answer.status_code == status
    assert words in answer.json()["message"]


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc", "Bearer wrong"])
def test_wrong_or_missing_key(header: str) -> None:
    with Emulator(api_key="right") as emulator:
        status, error = refusal(emulator, CHAT, chat_body("x"), authorization=header)
        assert (status, error) == (
            401,
            {"message": "Wrong API Key", "type": "invalid_request_error", "param": "api_key", "code": "wrong_api_key"},
        )
        assert post(emulator, CHAT, chat_body("x"), {"authorization": "Bearer right"}).status_code == 200


@pytest.mark.parametrize(("model", "code"), [("invalid model", "model_not_found"), ("llama3.1-8b", "model_archived")])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_unknown_models(emu: Emulator, path: str, model: str, code: str) -> None:
    body: dict[str, Any] = {"model": model, **({"messages": user("x")} if path == CHAT else {"prompt": "x"})}
    status, error = refusal(emu, path, body)
    assert (status, error["type"], error["param"], error["code"]) == (404, "not_found_error", "model", code)
    assert error["message"] == f"Model {model} does not exist or you do not have access to it."


def test_own_models() -> None:
    with Emulator(models=["my-endpoint"]) as emulator:
        assert post(emulator, CHAT, {"model": "my-endpoint", "messages": user("x")}).json()["model"] == "my-endpoint"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_context_overflow(path: str) -> None:
    text = "word " * 200
    with Emulator(context=100) as emulator:
        body: dict[str, Any] = {"model": MODEL, **({"messages": user(text)} if path == CHAT else {"prompt": text})}
        status, error = refusal(emulator, path, body)
        assert (status, error["code"]) == (400, "context_length_exceeded")
        assert error["message"].startswith("Please reduce the length of the messages or completion. Current length is ")
        assert error["message"].endswith(" while limit is 100")


def test_the_real_limit_of_gpt_oss(emu: Emulator) -> None:
    error = refusal(emu, CHAT, chat_body("word " * 131_100))[1]
    assert error["message"].endswith(" while limit is 131000")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"best_of": 3, "stream": True}, "best_of"),
        ({"best_of": 2, "n": 2}, "best_of"),
        ({"best_of": 21}, "best_of"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": True, "prompt": {}}, "prompt"),
    ],
)
def test_conflicts_of_a_completion(emu: Emulator, fields: dict[str, Any], words: str) -> None:
    status, error = refusal(emu, COMPLETIONS, {"model": MODEL, "prompt": "x", **fields})
    assert status == 400
    assert words in error["message"]


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def nested(depth: int) -> dict[str, Any]:
    return closed(x=nested(depth - 1)) if depth else {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "items": {"type": "string"}}, "Extra top level keys found in JSON schema: {'items'}"),
        ({"allOf": [closed()]}, "Extra top level keys found in JSON schema: {'allOf'}"),
        ({"type": "object", "properties": {}}, "'additionalProperties' is required to be supplied and set to false."),
        (closed(a=closed() | {"additionalProperties": {"type": "string"}}), "'additionalProperties' is required"),
        (
            closed(a={"type": "string", "format": "date"}),
            "Invalid fields for schema with types ['string']: {'format'}",
        ),
        (closed(a={"type": "string", "pattern": "a", "minLength": 1}), "{'minLength', 'pattern'}"),
        (closed(a={"type": "array", "items": {"type": "string"}, "minItems": 1}), "{'minItems'}"),
        (closed(a={"type": "array"}), "items"),
        (closed(a={"const": 1}), "{'const'}"),
        (closed(a={}), "fields"),
        (closed(a={"$ref": "#/$defs/b"}), "reference"),
        (closed(a={"$ref": "#/$defs/b"}) | {"$defs": {"b": closed(c={"$ref": "#/$defs/b"})}}, "Recursive"),
        (closed(a={"anyOf": [{"type": "string"}] * 6}), "anyOf"),
        (closed(a={"type": "string", "description": "x" * 5000}), "5000"),
        (nested(11), "deeper"),
        ({"type": "string"}, "object"),
    ],
)
def test_schemas_that_strict_mode_does_not_take(emu: Emulator, schema: dict[str, Any], words: str) -> None:
    status, error = refusal(emu, CHAT, chat_body("x", response_format=strict(schema)))
    assert (status, error["param"], error["code"]) == (400, "response_format", "wrong_api_format")
    assert words in error["message"]
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}
    assert refusal(emu, CHAT, chat_body("x", tools=[tool]))[1]["param"] == "tools"
    loose = json.loads(json.dumps(strict(schema)))
    loose["json_schema"]["strict"] = False
    assert post(emu, CHAT, chat_body("x", response_format=loose)).status_code == 200


@pytest.mark.parametrize(
    "schema",
    [
        closed(a={"type": ["string", "null"]}, b={"enum": [1, 2], "type": "integer"}),
        closed(a={"$ref": "#/$defs/b"}) | {"$defs": {"b": closed(c={"type": "number", "minimum": 1})}},
        closed(a={"anyOf": [{"type": "string"}, closed(b={"type": "boolean"})]}, b=nested(5)),
        closed(a={"type": "array", "prefixItems": [{"type": "string"}], "items": False}),
    ],
)
def test_schemas_that_strict_mode_takes(emu: Emulator, schema: dict[str, Any]) -> None:
    assert post(emu, CHAT, chat_body("x", response_format=strict(schema))).status_code == 200


def test_whole_numbers_may_be_written_with_a_point(emu: Emulator) -> None:
    answer = post(emu, CHAT, chat_body("x", n=2.0, max_tokens=3.0, seed=1.0))
    assert len(answer.json()["choices"]) == 2


@pytest.mark.parametrize(
    "keyword", ["multipleOf", "minimum", "minItems", "properties", "anyOf", "enum", "$ref", "type"]
)
def test_a_schema_that_is_none_is_refused_or_answered_but_breaks_nothing(emu: Emulator, keyword: str) -> None:
    for value in ("x", [1], {"a": 1}, 3, None):
        for kind in ("integer", "array", "object", "string"):
            form = strict({"type": kind, "items": {}, keyword: value})
            form["json_schema"]["strict"] = False
            answer = post(emu, CHAT, chat_body("x", response_format=form))
            assert answer.status_code in (200, 400), (kind, value, answer.text)
