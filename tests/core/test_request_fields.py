"""Requests that are plain data are validated without models, and become what the models would have made of them."""

from __future__ import annotations

import copy
import enum
import json
import types
from collections import OrderedDict, UserDict
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import BaseModel, create_model
from pydantic_core import SchemaError

from cerebras_ext import ChatRequest, CompletionRequest, request_fields
from cerebras_ext.errors import RequestValidationError
from cerebras_ext.request_fields import _plain_validator, _read_plain, dump_request, read_fields
from cerebras_ext.types import AssistantMessage, ImageUrl, JsonObjectFormat, StreamOptions, TextPart, Tool, UserMessage
from cerebras_ext.types._typed_dicts import UnknownSchemaError, typed_dict_schema
from tests.core.test_fields import CHAT, COMPLETION, MESSAGES, TOOL

USER = {"role": "user", "content": "q"}
CALL = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}


class Role(enum.StrEnum):
    USER = "user"


class Text(str):
    pass


class Inner(BaseModel):
    a: int | None = None


def outcome(read: Any, request_type: Any, fields: Mapping[str, Any]) -> Any:
    """Return bytes, or the complaint."""
    try:
        members, extra = read(request_type, fields)
    except RequestValidationError as error:
        return str(error)
    return json.dumps([members, extra], default=repr)


def by_models(request_type: Any, fields: Mapping[str, Any]) -> Any:
    return dump_request(request_type(**fields))


def as_plain_data(request_type: Any, fields: Mapping[str, Any]) -> Any:
    return read_fields(request_type, None, fields)


def chat(**fields: Any) -> tuple[Any, dict[str, Any]]:
    return ChatRequest, {"model": "m", "messages": [USER], **fields}


def messages(*given: Any) -> tuple[Any, dict[str, Any]]:
    return chat(messages=list(given))


def prompt(given: Any) -> tuple[Any, dict[str, Any]]:
    return CompletionRequest, {"model": "m", "prompt": given}


def tool(**parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


PLAIN = [
    (ChatRequest, CHAT),
    (CompletionRequest, COMPLETION),
    *(messages(message) for message in MESSAGES),
    messages({"role": "assistant", "content": None, "tool_calls": [CALL], "name": None, "reasoning": None}),
    messages({"role": "assistant", "content": [], "tool_calls": []}),
    messages({"role": "assistant"}),
    messages({"role": "assistant", "tool_calls": [{"id": "t", "function": CALL["function"], "index": None}]}),
    messages({"content": "q", "role": "user"}),
    messages({"role": Role.USER, "content": Text("q")}),
    messages({"role": "user", "content": b"bytes"}),
    messages({"role": "user", "content": "\ud83d lone"}),
    messages(OrderedDict(USER), types.MappingProxyType(USER), UserDict(USER)),
    messages({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": None}}]}),
    chat(temperature=1, n="2", seed=3.0, top_p=True, logprobs="true", stop=[], user=None, max_tokens=None),
    chat(stop=("a", "b"), logit_bias={"5": 1}, max_tokens=3, stream=False),
    chat(extra_body={"a": None, "b": {"c": [1]}}),
    chat(extra_body={}),
    chat(tools=[tool(a=None, b=[None, {"c": None}], d=Inner(), e={"f": (1, Inner(a=1))})], tool_choice="auto"),
    chat(tools=[]),
    chat(tools=[{"function": {"name": "f"}}]),
    chat(model_parameters={"a": Inner(), "b": {1: 2, None: 3}}),
    chat(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"a": None}, "strict": None}}),
    chat(prediction={"type": "content", "content": "x"}, stream_options={"include_usage": None}),
    *map(prompt, ("", "q", ["a", "b"], [1, True, 2.0], [[1], [2, 3]], [], [[]], [2**70], ["1", "2"], ("a",), (1, 2))),
]  # fmt: skip
OBJECTS = [
    messages(UserMessage(content="q"), USER),
    messages(AssistantMessage(content=[TextPart(text="t")], tool_calls=[])),
    messages({"role": "user", "content": [TextPart(text="t")]}),
    chat(messages=tuple(MESSAGES)),
    chat(tools=[Tool(**TOOL)]),
    chat(response_format=JsonObjectFormat(), stream_options=StreamOptions()),
    chat(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema_": {}}}),
]
WRONG = [
    chat(messages=[]),
    chat(messages=None),
    chat(model=""),
    chat(model=None),
    chat(messagess=[USER]),
    messages(USER, {**USER, "contents": 1}),
    messages({"role": "nobody", "content": "q"}),
    messages({"content": "q"}),
    messages({"role": "user"}),
    messages({"role": "user", "content": None}),
    messages({"role": "user", "content": 5}),
    messages({"role": "user", "content": [{"type": "text", "text": "t", "x": 1}]}),
    messages({"role": "tool", "content": "q"}),
    messages({"role": "assistant", "tool_calls": [{**CALL, "x": 1}]}),
    messages({"role": "assistant", "tool_calls": {"a": 1}}),
    messages(5, None, "x"),
    messages({**USER, 5: 6}),
    chat(temperature=2.1),
    chat(temperature=float("nan")),
    chat(logit_bias={"5": float("inf")}),
    chat(stop=["a"] * 5),
    chat(n=0),
    chat(tools=[{"type": "function", "function": {"name": "not legal"}}]),
    chat(tools=[{**TOOL, "cache": 1}]),
    chat(extra_body=[1]),
    chat(response_format={"type": "xml"}),
    *map(prompt, (None, -1, [-1], [[1, -2]], ["a", 1], [1.5], {"a": 1})),
]


@pytest.mark.parametrize(("request_type", "fields"), [*PLAIN, *OBJECTS, *WRONG])
def test_plain_data_becomes_what_the_models_make_of_it(request_type: Any, fields: dict[str, Any]) -> None:
    assert outcome(as_plain_data, request_type, fields) == outcome(by_models, request_type, fields)


@pytest.mark.parametrize(("request_type", "fields"), [(ChatRequest, CHAT), (CompletionRequest, COMPLETION), PLAIN[8]])
def test_plain_data_needs_no_models(request_type: Any, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = outcome(by_models, request_type, fields)
    monkeypatch.delattr(request_fields, "make_request")
    assert outcome(as_plain_data, request_type, fields) == expected


@pytest.mark.parametrize(("request_type", "fields"), [*OBJECTS, *WRONG])
def test_what_is_not_plain_or_wrong_is_left_to_the_models(request_type: Any, fields: dict[str, Any]) -> None:
    assert _read_plain(request_type, None, fields) is None


def test_nothing_of_the_callers_is_changed_or_sent_by_reference() -> None:
    given = copy.deepcopy(CHAT)
    members, _ = read_fields(ChatRequest, None, given)
    members["messages"].clear()
    members["tools"][0]["function"]["parameters"].clear()
    assert given == CHAT


def test_what_can_be_read_once_is_read_once() -> None:
    given = (message for message in (USER, UserMessage(content="r")))
    members, _ = read_fields(ChatRequest, None, {"model": "m", "messages": given})
    assert [message["content"] for message in members["messages"]] == ["q", "r"]


@pytest.mark.parametrize("kind", [UnknownSchemaError, SchemaError, KeyError, TypeError, AttributeError])
def test_a_schema_of_another_form_leaves_everything_to_the_models(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(model: type[BaseModel]) -> None:
        raise kind("unknown")

    _plain_validator.cache_clear()
    monkeypatch.setattr(request_fields, "typed_dict_schema", refuse)
    try:
        assert read_fields(ChatRequest, None, CHAT) == dump_request(ChatRequest(**CHAT))
    finally:
        _plain_validator.cache_clear()


def test_a_model_that_does_more_than_to_hold_fields_has_no_form_as_a_dictionary() -> None:
    class More(BaseModel):
        a: int = 1

        def model_post_init(self, context: Any) -> None:
            self.a += 1

    with pytest.raises(UnknownSchemaError):
        typed_dict_schema(More)


@pytest.mark.parametrize(
    "annotation",
    [
        list[int | None],
        list[list[TextPart | None]],
        dict[str, ImageUrl],
        dict[str, list[int | None]],
        Any,
        Any | None,
        Literal["a", None],
    ],
)
def test_values_that_a_dump_would_change_have_no_form_as_a_dictionary(annotation: Any) -> None:
    for model in (create_model("Has", a=(annotation, None)), create_model("Has", a=(annotation, ...))):
        with pytest.raises(UnknownSchemaError):
            typed_dict_schema(model)
