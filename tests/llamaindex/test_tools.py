"""Function calling: what is sent about tools, on every path."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import httpx
import pytest
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM, _supports_tool_required
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.tools import FunctionTool
from llama_index.core.tools.types import ToolMetadata
from pydantic import BaseModel

from cerebras_ext.errors import BadRequestError, RequestValidationError
from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.scripted import ask, both, responses, scripted
from tests.llamaindex.tooling import NOW, ONE, TOOL_PATHS, WEATHER, calling, entry, now, with_tools


@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_tools_are_sent_as_the_service_takes_them(path: str) -> None:
    llm, wire = scripted(ONE)
    await with_tools(llm, path, [WEATHER, NOW], allow_parallel_tool_calls=True)
    functions = [tool["function"] for tool in wire.body["tools"]]
    assert [tool["type"] for tool in wire.body["tools"]] == ["function", "function"]
    assert [function["name"] for function in functions] == ["weather", "now"]
    assert functions[0]["parameters"]["properties"].keys() == {"city", "days"}
    assert functions[0]["parameters"]["required"] == ["city"]
    assert (functions[1]["parameters"]["type"], functions[1]["parameters"]["properties"]) == ("object", {})
    assert all("strict" not in function for function in functions)
    assert wire.body.keys() - {"stream"} == {"model", "messages", "tools"}


@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_without_tools_nothing_about_tools_is_sent(path: str) -> None:
    llm, wire = scripted(both({"content": "a"}, {"content": "a"}))
    await with_tools(llm, path, [], tool_required=False)
    assert wire.body.keys() - {"stream"} == {"model", "messages"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, None),
        ({"tool_choice": None}, None),
        ({"tool_required": True}, "required"),
        ({"tool_required": True, "tool_choice": None}, "required"),
        ({"tool_required": True, "tool_choice": "auto"}, "auto"),
        ({"tool_choice": "none"}, "none"),
        ({"tool_choice": "required"}, "required"),
        ({"tool_choice": "any"}, "required"),
        ({"tool_choice": "weather"}, {"type": "function", "function": {"name": "weather"}}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "now"}}},
            {"type": "function", "function": {"name": "now"}},
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_tool_choice_in_every_spelling(path: str, given: dict[str, Any], sent: Any) -> None:
    llm, wire = scripted(ONE)
    await with_tools(llm, path, [WEATHER, NOW], **given)
    assert wire.body.get("tool_choice") == sent


async def test_tool_choice_that_names_no_tool_is_refused_before_sending() -> None:
    llm, wire = scripted(ONE)
    for path in TOOL_PATHS:
        with pytest.raises(ValueError, match="nope"):
            await with_tools(llm, path, [WEATHER], tool_choice="nope")
    assert wire.bodies == []


@pytest.mark.parametrize(("allowed", "sent"), [(True, "absent"), (False, False)])
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_parallel_calls_are_forbidden_on_the_wire_and_never_null(path: str, allowed: bool, sent: Any) -> None:
    llm, wire = scripted(ONE)
    await with_tools(llm, path, [WEATHER], allow_parallel_tool_calls=allowed)
    assert wire.body.get("parallel_tool_calls", "absent") is sent


@pytest.mark.parametrize("user_msg", ["hi", ChatMessage(role="user", content="hi")])
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_user_message_comes_after_a_history_that_is_not_changed(path: str, user_msg: Any) -> None:
    llm, wire = scripted(ONE)
    history = [ChatMessage(role="system", content="s")]
    await with_tools(llm, path, [WEATHER], user_msg=user_msg, chat_history=history)
    assert wire.body["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]
    assert len(history) == 1


@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_other_options_reach_the_request(path: str) -> None:
    llm, wire = scripted(ONE)
    await with_tools(llm, path, [WEATHER], seed=3, temperature=0.5, reasoning_effort="low")
    assert (wire.body["seed"], wire.body["temperature"], wire.body["reasoning_effort"]) == (3, 0.5, "low")


@pytest.mark.parametrize("where", ["field", "call"])
async def test_strict_is_for_all_tools_of_a_request(where: str) -> None:
    llm, wire = scripted(ONE, **({"strict": True} if where == "field" else {}))
    llm.chat_with_tools([WEATHER, NOW], user_msg="q", **({"strict": True} if where == "call" else {}))
    for tool in wire.body["tools"]:
        assert tool["function"]["strict"] is True
        assert tool["function"]["parameters"]["additionalProperties"] is False
    assert wire.body["tools"][0]["function"]["parameters"]["required"] == ["city"], "no nulls for what may be left out"


async def test_tools_that_differ_in_strict_are_made_equal() -> None:
    llm, wire = scripted(ONE)
    specs: list[Any] = [WEATHER.metadata.to_openai_tool(), NOW.metadata.to_openai_tool()]
    specs[0]["function"]["strict"] = True
    llm.chat(ask(), tools=specs)
    assert {tool["function"].get("strict") for tool in wire.body["tools"]} == {True}
    assert "strict" not in specs[1]["function"]


@pytest.mark.parametrize("path", ["chat", "stream_chat"])
async def test_chat_takes_tools_and_choice_in_llama_index_form(path: str) -> None:
    llm, wire = scripted(ONE)
    await responses(llm, path, ask(), tools=[WEATHER], tool_choice="weather")
    assert wire.body["tools"][0]["function"]["name"] == "weather"
    assert wire.body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}


def test_long_description_is_no_obstacle() -> None:
    llm, wire = scripted(ONE)
    llm.chat_with_tools([FunctionTool.from_defaults(now, description="x" * 5000)], user_msg="q")
    assert len(wire.body["tools"][0]["function"]["description"]) == 5000


def test_name_that_is_too_long_is_refused_before_sending() -> None:
    llm, wire = scripted(ONE)
    with pytest.raises(RequestValidationError, match="n" * 65):
        llm.chat_with_tools([FunctionTool.from_defaults(now, name="n" * 65)], user_msg="q")
    assert wire.bodies == []


def test_specification_with_an_illegal_name_is_refused_before_sending() -> None:
    llm, wire = scripted(ONE)
    tool = {"type": "function", "function": {"name": "ns.search", "parameters": {}}}
    with pytest.raises(ValueError, match=r"ns\.search"):
        llm.chat(ask(), tools=[tool])
    assert wire.bodies == []


def test_two_names_that_become_one_are_refused() -> None:
    llm, wire = scripted(ONE)
    with pytest.raises(ValueError, match="a_b"):
        llm.chat_with_tools([FunctionTool.from_defaults(now, name=name) for name in ("a.b", "a b")], user_msg="q")
    assert wire.bodies == []


def test_forced_choice_that_a_model_refuses_is_told_with_a_hint() -> None:
    refusal = {"message": "Expected auto or none", "type": "invalid_request_error", "param": "tool_choice", "code": "x"}
    llm, wire = scripted(httpx.Response(400, json=refusal))
    with pytest.raises(BadRequestError, match="json_schema"):
        llm.chat_with_tools([WEATHER], user_msg="q", tool_required=True)
    assert wire.body["tool_choice"] == "required"


def test_core_sees_that_tool_required_is_supported() -> None:
    assert isinstance(scripted({})[0], FunctionCallingLLM)
    assert _supports_tool_required(Cerebras, True)


# ---- names that the service cannot take ----

T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    """A box."""

    content: T


@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_names_are_mapped_to_the_service_and_back(path: str) -> None:
    tool = FunctionTool.from_defaults(now, name="ns.get time")
    llm, wire = scripted(calling(entry("c1", "ns_get_time", "{}")))
    found = await with_tools(llm, path, [tool], tool_choice="ns.get time")
    assert wire.body["tools"][0]["function"]["name"] == "ns_get_time"
    assert wire.body["tool_choice"]["function"]["name"] == "ns_get_time"
    for response in found:
        assert [block.tool_name for block in response.message.blocks if isinstance(block, ToolCallBlock)] == [
            "ns.get time"
        ]
        assert response.message.additional_kwargs["tool_calls"][0]["function"]["name"] == "ns.get time"
    (selection,) = llm.get_tool_calls_from_response(found[-1])
    assert selection.tool_name == "ns.get time"


@pytest.mark.parametrize("is_async", [False, True])
async def test_generic_model_as_output_of_a_program(is_async: bool) -> None:
    llm, wire = scripted(calling(entry("c1", "Box_int_", '{"content": 7}')))
    program = FunctionCallingProgram.from_defaults(Box[int], llm=llm, prompt_template_str="q", tool_required=True)
    output = await program.acall() if is_async else program()
    assert output == Box[int](content=7)
    assert wire.body["tools"][0]["function"]["name"] == "Box_int_"
    assert wire.body["tool_choice"] == "required"


# ---- tools of other kinds ----


def test_tool_without_a_schema_of_its_own() -> None:
    class Bare:
        metadata = ToolMetadata(name="bare", description="d", fn_schema=None)

    llm, wire = scripted(ONE)
    llm.chat_with_tools([Bare()], user_msg="q")  # type: ignore[list-item]
    assert wire.body["tools"][0]["function"]["parameters"]["properties"] == {
        "input": {"title": "input query string", "type": "string"}
    }
