"""Structured output in the strict dialect, and schemas of every shape."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any, Generic, Literal, TypedDict, TypeVar

import pytest
import typing_extensions
from langchain_core.exceptions import OutputParserException
from pydantic import BaseModel, ConfigDict, EmailStr, Field

from tests.langchain.people import (
    PARAMETERS,
    SCHEMA,
    Person,
    answering,
)
from tests.langchain.stub import PATHS, Stub, last, say

T = TypeVar("T")


def test_every_object_is_closed() -> None:
    class Inner(BaseModel):
        x: int

    class Outer(BaseModel):
        inner: Inner
        more: list[Inner]

    stub = Stub(say('{"inner": {"x": 1}, "more": []}'))
    stub.model().with_structured_output(Outer).invoke("q")
    text = json.dumps(stub.body["response_format"]["json_schema"]["schema"])
    assert text.count('"type": "object"') == text.count('"additionalProperties": false') == 2


class Limits(BaseModel):
    tags: list[str] = Field(min_length=1, max_length=3)
    count: int = Field(ge=0, multiple_of=2)
    code: str = Field(pattern="^[a-z]+$", min_length=2, examples=["ab"])
    mail: EmailStr
    day: datetime.date


def test_constraints_are_not_sent_but_told_and_enforced() -> None:
    good = {"tags": ["a"], "count": 2, "code": "ab", "mail": "a@example.com", "day": "2026-11-30"}
    stub = Stub(say(json.dumps(good)), say(json.dumps({**good, "tags": [], "count": -1})))
    structured = stub.model().with_structured_output(Limits)
    assert structured.invoke("q") == Limits.model_validate(good)
    text = json.dumps(stub.bodies[0]["response_format"])
    for keyword in ("minItems", "maxItems", "minimum", "multipleOf", "minLength", "pattern", "format", "examples"):
        assert f'"{keyword}"' not in text
    assert "at least 1 item" in text
    with pytest.raises(OutputParserException, match="2 validation errors"):
        structured.invoke("q")


def test_constraints_of_a_plain_schema_are_enforced_too() -> None:
    schema = {**SCHEMA, "properties": {"name": {"type": "string", "minLength": 2}}}
    with pytest.raises(OutputParserException, match="at least 2 characters"):
        Stub(say('{"name": "A"}')).model().with_structured_output(schema).invoke("q")


@pytest.mark.parametrize("answer", [{"name": "Ada", "age": None, "note": None}, {"name": "Ada"}])
@pytest.mark.parametrize("path", PATHS)
async def test_a_null_or_missing_member_becomes_the_default(answer: Any, path: str) -> None:
    stub = Stub(say(json.dumps(answer)))
    assert await last(stub.model().with_structured_output(Person), path) == Person(name="Ada", age=5, note=None)
    assert stub.body["response_format"]["json_schema"]["schema"]["required"] == ["name", "age", "note"]


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"title": "L", "type": "array", "items": {"type": "string"}}, ["a", "b"]),
        (list[int], [1, 2]),
        (int | str, 3),
        (Literal["a", "b"], "b"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", PATHS)
async def test_a_root_that_is_no_object_is_wrapped_and_unwrapped(
    schema: Any, answer: Any, method: str, strict: bool, path: str
) -> None:
    stub = Stub(lambda body: answering({"value": answer}, method, _tool_name(body)))
    structured = stub.model().with_structured_output(schema, method=method, strict=strict)
    assert await last(structured, path) == answer
    sent = stub.body["tools"][0]["function"]["parameters"] if "tools" in stub.body else _sent(stub)
    assert sent["type"] == "object"
    assert list(sent["properties"]) == ["value"]


def _tool_name(body: dict[str, Any]) -> str:
    return body["tools"][0]["function"]["name"] if "tools" in body else ""


def _sent(stub: Stub) -> dict[str, Any]:
    schema: dict[str, Any] = stub.body["response_format"]["json_schema"]["schema"]
    return schema


def test_a_recursive_schema_is_refused_at_once_and_sent_without_strict() -> None:
    with pytest.raises(ValueError, match="recursive"):
        Stub(say("x")).model().with_structured_output(Node)
    stub = Stub(say('{"value": 1, "children": [{"value": 2}]}'))
    node = stub.model().with_structured_output(Node, strict=False).invoke("q")
    assert node == Node(value=1, children=[Node(value=2)])
    assert "Node" in _sent(stub)["$defs"]


class Node(BaseModel):
    value: int
    children: list[Node] = []


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({**SCHEMA, "additionalProperties": True}, "open map"),
        ({**SCHEMA, "properties": {"name": {"enum": ["x" * 10 * n for n in range(1, 60)]}}}, "characters"),
    ],
)
def test_what_has_no_strict_form_is_refused_with_a_way_out(schema: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as caught:
        Stub(say("x")).model().with_structured_output(schema)
    assert "strict off" in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]},
        {"title": "ünï code!", **PARAMETERS},
        {"title": "x" * 100, **PARAMETERS},
    ],
    ids=["no title", "other letters", "long"],
)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_a_schema_always_has_a_valid_name(schema: Any, method: Any) -> None:
    stub = Stub(lambda body: answering({"n": "x", "name": "x"}, method, _tool_name(body)))
    assert stub.model().with_structured_output(schema, method=method, strict=False).invoke("q")
    body = stub.body
    name = _tool_name(body) if method == "function_calling" else body["response_format"]["json_schema"]["name"]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)


def test_a_generic_class_has_a_valid_name() -> None:
    class Box(BaseModel, Generic[T]):
        content: T

    stub = Stub(say('{"content": 1}'))
    assert stub.model().with_structured_output(Box[int]).invoke("q") == Box[int](content=1)
    assert stub.body["response_format"]["json_schema"]["name"] == "Box_int_"


class Address(TypedDict):
    """Where somebody lives."""

    street: str


class Resident(typing_extensions.TypedDict):
    """A resident.

    Args:
        name: How they are called,
            in full.
        address: Where they live.
    """

    name: str
    address: Address
    nick: typing_extensions.NotRequired[list[Address]]


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_a_typed_dict_may_be_nested_described_and_incomplete(method: Any) -> None:
    answer = {"name": "Ada", "address": {"street": "x"}}
    stub = Stub(answering(answer, method, "Resident"))
    assert stub.model().with_structured_output(Resident, method=method).invoke("q") == answer
    body = stub.body
    function = body["tools"][0]["function"] if "tools" in body else body["response_format"]["json_schema"]
    assert (function["name"], function["description"]) == ("Resident", "A resident.")
    properties = (function.get("parameters") or function["schema"])["properties"]
    assert properties["name"] == {"type": "string", "description": "How they are called, in full."}
    assert "street" in json.dumps(function)


class Strictly(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    pair: tuple[int, str]
    parts: set[int]


def test_a_class_in_pydantics_strict_mode_takes_json() -> None:
    stub = Stub(say('{"day": "2026-11-30", "pair": [1, "a"], "parts": [1]}'))
    expected = Strictly(day=datetime.date(2026, 11, 30), pair=(1, "a"), parts={1})
    assert stub.model().with_structured_output(Strictly).invoke("q") == expected


def test_aliases_and_enums_reach_the_wire() -> None:
    class Aliased(BaseModel):
        kind: Literal["a", "b"] = Field(alias="theKind")

    stub = Stub(say('{"theKind": "b"}'))
    assert stub.model().with_structured_output(Aliased).invoke("q").kind == "b"
    assert _sent(stub)["properties"] == {"theKind": {"type": "string", "enum": ["a", "b"]}}
