"""`strict` on tools is all or nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cerebras_ext.strict_schema import SchemaError, strict_tools

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "unit": {"type": "string", "default": "C"}},
    "required": ["city"],
}


def tool(name: str, parameters: Any = PARAMETERS, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters, **more}}


@pytest.mark.parametrize("strict", [None, False])
def test_without_strict_no_tool_carries_the_key_and_parameters_stay(strict: bool | None) -> None:
    prepared = strict_tools([tool("a"), tool("b", strict=strict)])
    assert prepared.tools == [tool("a"), tool("b")]
    assert not prepared.strict
    assert prepared.restore("a", {"city": "x", "unit": None}) == {"city": "x", "unit": None}


def test_one_strict_tool_makes_all_of_them_strict() -> None:
    tools = [tool("a", strict=True), tool("b")]
    before = copy.deepcopy(tools)
    prepared = strict_tools(tools)
    assert prepared.strict
    assert [part["function"]["strict"] for part in prepared.tools] == [True, True]
    assert prepared.tools[1]["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "(at least 1 character)"},
            "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
    assert tools == before


def test_the_caller_decides_for_all() -> None:
    assert strict_tools([tool("a")], strict=True).strict
    assert "strict" not in strict_tools([tool("a", strict=True)], strict=False).tools[0]["function"]


def test_nulls_of_optional_arguments_are_dropped() -> None:
    prepared = strict_tools([tool("a", strict=True)])
    assert prepared.restore("a", {"city": "x", "unit": None}) == {"city": "x"}
    assert prepared.restore("never_declared", {"unit": None}) == {"unit": None}


def test_tools_that_cannot_be_strict_are_listed_with_the_reason() -> None:
    array = {"type": "array", "items": {"type": "null"}}
    broken = {"type": "object", "additionalProperties": {"type": "string"}}
    with pytest.raises(SchemaError) as caught:
        strict_tools([tool("a", strict=True), tool("b", broken), tool("c", array), {"type": "web_search"}])
    lines = str(caught.value).splitlines()
    assert "all or nothing" in lines[0]
    assert lines[1].startswith("b: $: is an open map")
    assert lines[2] == "c: parameters must be one object, not a union or another type"
    assert lines[3] == "web_search: only functions can be strict"


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_arguments_is_never_a_bare_object(parameters: Any) -> None:
    loose = strict_tools([tool("now", parameters)]).tools[0]["function"]["parameters"]
    assert loose == {"type": "object", "properties": {}}
    strict = strict_tools([tool("now", parameters)], strict=True).tools[0]["function"]["parameters"]
    assert strict == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_a_tool_without_the_parameters_key_gets_an_empty_object() -> None:
    bare = {"type": "function", "function": {"name": "now"}}
    assert strict_tools([bare]).tools[0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert bare == {"type": "function", "function": {"name": "now"}}


def test_loose_parameters_keep_what_strict_would_refuse() -> None:
    loose = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"], "default": 1}},
        "additionalProperties": True,
    }
    assert strict_tools([tool("a", loose)]).tools[0]["function"]["parameters"] == loose
    assert strict_tools([tool("a", {"properties": {}})]).tools[0]["function"]["parameters"]["type"] == "object"
    assert strict_tools([{"type": "web_search"}]).tools == [{"type": "web_search"}]


def test_no_tools_are_no_tools() -> None:
    assert strict_tools([], strict=True).tools == []
