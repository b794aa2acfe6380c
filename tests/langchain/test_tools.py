"""bind_tools: every kind of tool and choice, what goes out, and what comes back."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableBinding
from langchain_core.tools import InjectedToolArg, StructuredTool, Tool, tool
from pydantic import BaseModel, Field
from pydantic.v1 import BaseModel as BaseModelV1

from langchain_cerebras_ext.errors import BadRequestError
from langchain_cerebras_ext.tools import to_wire_options, wire_tool_choice, wire_tools
from tests.langchain.stub import PATHS, Stub, ask, refuse, say

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WIRE = {"type": "function", "function": {"name": "weather", "description": "Weather.", "parameters": PARAMETERS}}


@tool
def weather(city: str) -> str:
    """Weather."""
    return f"sun in {city}"


@tool
def now() -> str:
    """Time."""
    return "noon"


class WeatherClass(BaseModel):
    """Weather."""

    city: str


class WeatherV1(BaseModelV1):
    """Weather."""

    city: str


class WeatherDict(TypedDict):
    """Weather."""

    city: str


def weather_function(city: str) -> str:
    """Weather."""
    return city


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {**WIRE["function"], "name": name}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (weather, "weather"),
        (WeatherClass, "WeatherClass"),
        (WeatherV1, "WeatherV1"),
        (WeatherDict, "WeatherDict"),
        (weather_function, "weather_function"),
        (StructuredTool.from_function(weather_function, name="st"), "st"),
        (StructuredTool(name="js", description="Weather.", args_schema=PARAMETERS), "js"),
        (WIRE, "weather"),
        (WIRE["function"], "weather"),
        ({"type": "function", **WIRE["function"]}, "weather"),  # type: ignore[dict-item]
        ({"title": "schema", "description": "Weather.", **PARAMETERS}, "schema"),
        ({"name": "anthropic", "description": "Weather.", "input_schema": PARAMETERS}, "anthropic"),
        ({"toolSpec": {"name": "b", "description": "Weather.", "inputSchema": {"json": PARAMETERS}}}, "b"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_kind_of_tool_has_the_same_form_on_the_wire(given: Any, name: str) -> None:
    before = copy.deepcopy(given) if isinstance(given, dict) else None
    stub = Stub(say("x"))
    stub.model().bind_tools([given]).invoke("q")
    assert stub.body == {"tools": [_named(name)]}
    assert before is None or given == before


def test_a_tool_with_a_single_text_as_input_can_be_bound() -> None:
    simple = Tool("simple", lambda text: text, "S.")
    assert wire_tools([simple])[0]["function"]["parameters"]["required"] == ["__arg1"]


def test_injected_arguments_are_not_told_to_the_model() -> None:
    @tool
    def pay(amount: int, user: Annotated[str, InjectedToolArg]) -> str:
        """Pay."""
        return user

    assert list(wire_tools([pay])[0]["function"]["parameters"]["properties"]) == ["amount"]


@pytest.mark.parametrize(
    "given",
    [
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "mcp", "server_url": "x"},
        {"type": "custom", "name": "code"},
        Tool("c", str, "C.", metadata={"type": "custom_tool"}),
    ],
    ids=str,
)
def test_a_built_in_tool_of_another_provider_is_refused_by_name(given: Any) -> None:
    with pytest.raises(ValueError, match="functions only"):
        wire_tools([given])


@pytest.mark.parametrize("extra", [{"cache_control": {"type": "ephemeral"}}, {"eager_input_streaming": True}])
def test_members_of_tools_that_the_service_refuses_are_left_out(extra: dict[str, Any]) -> None:
    assert wire_tools([{**WIRE, **extra, "function": {**WIRE["function"], **extra}}]) == [WIRE]  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["ns.search", "a" * 65, "", "with space", "ünï"])
def test_a_name_the_service_cannot_compile_is_refused_at_bind_time(name: str) -> None:
    stub = Stub(say("x"))
    with pytest.raises(ValueError, match=r"64 of a-z") as caught:
        stub.model().bind_tools([WIRE, _named(name)])
    assert repr(name) in str(caught.value)
    assert not stub.bodies


def test_a_name_at_the_limit_is_taken() -> None:
    assert wire_tools([_named("a" * 64)])[0]["function"]["name"] == "a" * 64


# ---- choice ----

FORCED = {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("any", "required"),
        (True, "required"),
        ("weather", FORCED),
        (FORCED, FORCED),
        ({"type": "function", "name": "weather"}, FORCED),
        ({"type": "tool", "name": "weather"}, FORCED),
        ({"name": "weather"}, FORCED),
        ({"type": "any"}, "required"),
        ({"type": "auto"}, "auto"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", PATHS)
async def test_every_spelling_of_a_tool_choice_reaches_the_wire(choice: Any, sent: Any, path: str) -> None:
    stub = Stub(say("x"))
    await ask(stub.model().bind_tools([weather], tool_choice=choice), path)
    assert stub.body == {"tools": [WIRE], "tool_choice": sent}


@pytest.mark.parametrize("choice", [None, False])
def test_no_tool_choice_is_not_sent(choice: Any) -> None:
    stub = Stub(say("x"))
    stub.model().bind_tools([weather], tool_choice=choice, parallel_tool_calls=None).invoke("q")
    assert stub.body == {"tools": [WIRE]}


@pytest.mark.parametrize("choice", ["nope", {"type": "function", "function": {"name": "nope"}}])
def test_an_unknown_tool_is_not_chosen(choice: Any) -> None:
    with pytest.raises(ValueError, match=r"'nope' is none of the tools \['weather'\]"):
        Stub(say("x")).model().bind_tools([weather], tool_choice=choice)


def test_a_choice_without_a_form_is_refused() -> None:
    with pytest.raises(ValueError, match="has no form"):
        wire_tool_choice({"type": "allowed_tools", "tools": []}, [WIRE])
    with pytest.raises(ValueError, match="must be a text, a bool or a dictionary"):
        wire_tool_choice(["weather"], [WIRE])  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"tool_choice": "auto"}, {"parallel_tool_calls": True}, {"strict": True}])
def test_an_empty_list_of_tools_is_dropped_with_what_depends_on_it(options: dict[str, Any]) -> None:
    stub = Stub(say("x"))
    stub.model().bind_tools([], **options).invoke("q")
    assert stub.body == {}


@pytest.mark.parametrize("choice", ["any", "weather"])
def test_a_call_cannot_be_forced_without_tools(choice: str) -> None:
    with pytest.raises(ValueError, match="needs tools"):
        Stub(say("x")).model().bind_tools([], tool_choice=choice)


@pytest.mark.parametrize("parallel", [True, False])
def test_parallel_tool_calls_is_sent_when_set(parallel: bool) -> None:
    stub = Stub(say("x"))
    stub.model().bind_tools([weather], parallel_tool_calls=parallel).invoke("q")
    assert stub.body == {"tools": [WIRE], "parallel_tool_calls": parallel}


def test_a_refused_tool_choice_is_surfaced_with_a_way_out() -> None:
    stub = Stub(refuse(400, "tool_choice is not supported", param="tool_choice"))
    with pytest.raises(BadRequestError, match="json_schema"):
        stub.model().bind_tools([weather], tool_choice="any").invoke("q")
    assert len(stub.bodies) == 1


# ---- strict ----


class Trip(BaseModel):
    """Trip."""

    days: int = Field(ge=1)
    unit: str = "C"
    note: str | None = None


def test_strict_is_not_sent_unless_asked_for() -> None:
    assert "strict" not in json.dumps(wire_tools([weather, Trip]))
    assert "strict" not in json.dumps(wire_tools([weather], strict=False))


@pytest.mark.parametrize("order", [1, -1])
def test_one_strict_tool_makes_all_strict(order: int) -> None:
    strict: Any = {"type": "function", "function": {"name": "s", "parameters": PARAMETERS, "strict": True}}
    wire = wire_tools([strict, weather, now][::order])
    assert {one["function"]["strict"] for one in wire} == {True}
    assert all(one["function"]["parameters"]["additionalProperties"] is False for one in wire)


def test_strict_arguments_may_be_left_out_without_being_null() -> None:
    stub = Stub(say("x"))
    stub.model().bind_tools([Trip], strict=True).invoke("q")
    (sent,) = stub.body["tools"]
    assert sent["function"] == {
        "name": "Trip",
        "description": "Trip.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "days": {"type": "integer", "description": "(at least 1)"},
                "unit": {"type": "string"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["days"],
            "additionalProperties": False,
        },
    }


def test_a_tool_can_ask_for_strict_by_its_extras() -> None:
    asking = StructuredTool.from_function(weather_function, extras={"strict": True})
    assert {one["function"]["strict"] for one in wire_tools([asking, now])} == {True}


def test_tools_that_cannot_be_strict_are_named() -> None:
    def open_map(values: dict[str, int]) -> None:
        """Map."""

    with pytest.raises(ValueError, match="open_map"):
        Stub(say("x")).model().bind_tools([weather, open_map], strict=True)


def test_a_tool_without_arguments_is_never_a_bare_object() -> None:
    assert wire_tools([now])[0]["function"]["parameters"] == {"type": "object", "properties": {}}
    strict = wire_tools([now, {"name": "b"}], strict=True)
    empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert [one["function"]["parameters"] for one in strict] == [empty, empty]


def test_a_self_referencing_schema_is_bound_with_resolvable_references() -> None:
    class Node(BaseModel):
        """Node."""

        value: int
        children: list[Node] = []

    parameters = wire_tools([Node])[0]["function"]["parameters"]
    assert "value" in parameters["properties"]
    text = json.dumps(parameters)
    assert "$ref" not in text or "$defs" in parameters


# ---- bound models ----


def test_a_bound_model_is_a_binding_that_can_be_pickled_and_bound_again() -> None:
    bound = Stub(say("x")).model().bind_tools([weather], tool_choice="any")
    assert isinstance(bound, RunnableBinding)
    assert bound.kwargs == {"tools": [WIRE], "tool_choice": "required"}
    assert pickle.loads(pickle.dumps(bound.kwargs)) == bound.kwargs


def test_tools_with_a_response_format_are_sent_as_asked_and_the_refusal_has_a_hint() -> None:
    stub = Stub(refuse(400, "response_format is not supported with tools", param="response_format"))
    bound = stub.model().bind_tools([weather], response_format=WeatherClass)
    with pytest.raises(BadRequestError, match="refuses tools together with response_format"):
        bound.invoke("q")
    closed = {**PARAMETERS, "additionalProperties": False}
    schema = {"name": "WeatherClass", "description": "Weather.", "schema": closed, "strict": True}
    assert stub.body == {"tools": [WIRE], "response_format": {"type": "json_schema", "json_schema": schema}}


def test_options_of_the_call_can_be_bound_along() -> None:
    stub = Stub(say("x"))
    stub.model(temperature=1.0).bind_tools([weather], temperature=0.5, seed=1).invoke("q")
    assert stub.body == {"tools": [WIRE], "temperature": 0.5, "seed": 1}


# ---- without bind_tools ----

LEVELS = ("constructor", "bind", "call")


async def ask_with(stub: Stub, level: str, path: str, options: dict[str, Any]) -> None:
    """Give options at one of the levels, and ask."""
    model: Any = stub.model(**(options if level == "constructor" else {}))
    bound = model.bind(**options) if level == "bind" else model
    await ask(bound, path, **(options if level == "call" else {}))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("level", ["bind", "call"])
async def test_tools_and_choices_may_be_given_without_bind_tools(level: str, path: str) -> None:
    stub = Stub(say("x"))
    await ask_with(stub, level, path, {"tools": [weather, WIRE["function"]], "tool_choice": "any"})
    assert stub.body == {"tools": [WIRE, WIRE], "tool_choice": "required"}


@pytest.mark.parametrize("level", LEVELS)
async def test_strictness_is_uniform_at_every_level(level: str) -> None:
    strict = {"type": "function", "function": {"name": "s", "parameters": PARAMETERS, "strict": True}}
    given = [strict, copy.deepcopy(WIRE)]
    before = copy.deepcopy(given)
    stub = Stub(say("x"))
    await ask_with(stub, level, "invoke", {"tools": given})
    assert [one["function"]["strict"] for one in stub.body["tools"]] == [True, True]
    assert all(one["function"]["parameters"]["additionalProperties"] is False for one in stub.body["tools"])
    assert given == before


def test_wire_tools_pass_unchanged_and_uncopied() -> None:
    fields = {"tools": [WIRE], "tool_choice": "auto", "response_format": {"type": "json_object"}}
    assert to_wire_options(fields) == fields
    assert to_wire_options({"tools": fields["tools"]})["tools"] is fields["tools"]


@pytest.mark.parametrize("level", ["bind", "call"])
async def test_a_class_may_be_given_as_response_format(level: str) -> None:
    stub = Stub(say("{}"))
    await ask_with(stub, level, "invoke", {"response_format": WeatherClass})
    assert stub.body["response_format"]["json_schema"]["name"] == "WeatherClass"


@pytest.mark.parametrize("level", ["bind", "call"])
async def test_an_unknown_choice_is_refused_before_anything_is_sent(level: str) -> None:
    stub = Stub(say("x"))
    with pytest.raises(ValueError, match="'nope' is none of the tools"):
        await ask_with(stub, level, "invoke", {"tools": [WIRE], "tool_choice": "nope"})
    assert not stub.bodies
