"""Calls of functions and structured prediction: what is sent, what is selected, what is told."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel

from cerebras_ext.emulator import Fault
from tests.llamaindex.conformance.listening import Listener
from tests.llamaindex.conformance.service import CHAT_PATHS, Service, ask

TOOL_PATHS = tuple(f"{path}_with_tools" for path in CHAT_PATHS)
ARGUMENTS = json.dumps({"city": "Paris", "days": 3})
CALL = {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}


def weather(city: str, days: int = 1) -> str:
    """Tell the weather.

    Args:
        city: Where.
        days: How far ahead.
    """
    return f"{city} {days}"


TOOLS = [FunctionTool.from_defaults(weather)]


async def with_tools(llm: Any, path: str, **options: Any) -> list[Any]:
    given = {"tools": TOOLS, "user_msg": "q", **options}
    method = getattr(llm, path)
    if path.startswith("astream"):
        return [chunk async for chunk in await method(**given)]
    if path.startswith("stream"):
        return list(method(**given))
    return [await method(**given) if path.startswith("a") else method(**given)]


@pytest.mark.needs("tools")
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_tools_are_sent_and_calls_are_selected(service: Service, path: str) -> None:
    service.says(path, tool_calls=[CALL], finish_reason="tool_calls")
    llm = service.make()
    last = (await with_tools(llm, path))[-1]
    function = service.body["tools"][0]["function"]
    assert (function["name"], function["parameters"]["required"]) == ("weather", ["city"])
    assert service.body["messages"] == [{"role": "user", "content": "q"}]
    (selection,) = llm.get_tool_calls_from_response(last)
    assert (selection.tool_id, selection.tool_name) == ("call_a", "weather")
    assert selection.tool_kwargs == {"city": "Paris", "days": 3}


@pytest.mark.needs("tools")
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_calls_are_blocks_and_plain_dictionaries(service: Service, path: str) -> None:
    service.says(path, "text", tool_calls=[CALL], finish_reason="tool_calls")
    message = (await with_tools(service.make(), path))[-1].message
    assert [type(block) for block in message.blocks if block.block_type != "thinking"] == [TextBlock, ToolCallBlock]
    (call,) = message.additional_kwargs["tool_calls"]
    assert type(call) is dict
    assert (call["id"], call["function"]["name"]) == ("call_a", "weather")
    assert json.loads(call["function"]["arguments"]) == json.loads(ARGUMENTS)
    assert ChatMessage.model_validate_json(message.model_dump_json()) == message


@pytest.mark.needs("tools")
@pytest.mark.parametrize("path", [path for path in TOOL_PATHS if "stream" in path])
async def test_calls_can_be_read_from_every_chunk(service: Service, path: str) -> None:
    service.says(path, tool_calls=[CALL], finish_reason="tool_calls")
    llm = service.make()
    seen = []
    for chunk in await with_tools(llm, path):
        for selection in llm.get_tool_calls_from_response(chunk, error_on_no_tool_call=False):
            assert isinstance(selection.tool_kwargs, dict)
            seen.append(selection.tool_kwargs)
    assert seen[-1] == json.loads(ARGUMENTS)


@pytest.mark.needs("tools")
def test_an_answer_without_calls_is_an_error_only_where_asked(service: Service) -> None:
    service.says("chat", "no calls")
    llm = service.make()
    response = llm.chat_with_tools(TOOLS, user_msg="q")
    assert llm.get_tool_calls_from_response(response, error_on_no_tool_call=False) == []
    with pytest.raises(ValueError, match="tool call"):
        llm.get_tool_calls_from_response(response)


@pytest.mark.needs("tools")
@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({"tool_required": True}, "required"),
        ({"tool_required": True, "tool_choice": None}, "required"),
        ({"tool_choice": "weather"}, {"type": "function", "function": {"name": "weather"}}),
        ({"tool_choice": "none"}, "none"),
    ],
)
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_a_call_can_be_forced(service: Service, path: str, options: dict[str, Any], choice: Any) -> None:
    service.says(path, tool_calls=[CALL], finish_reason="tool_calls")
    await with_tools(service.make(), path, **options)
    assert service.body["tool_choice"] == choice


@pytest.mark.needs("tools")
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_without_tools_nothing_about_tools_is_sent(service: Service, path: str) -> None:
    service.says(path, "a")
    await with_tools(service.make(), path, tools=[])
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(service.body)


@pytest.mark.needs("tools")
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_the_history_is_sent_and_not_changed(service: Service, path: str) -> None:
    history = [
        ChatMessage(role=MessageRole.USER, content="first"),
        ChatMessage(
            role=MessageRole.ASSISTANT,
            blocks=[ToolCallBlock(tool_call_id="call_a", tool_name="weather", tool_kwargs={"city": "Rome"})],
        ),
        ChatMessage(role=MessageRole.TOOL, content="sun", additional_kwargs={"tool_call_id": "call_a"}),
    ]
    before = copy.deepcopy(history)
    service.says(path, "a")
    await with_tools(service.make(), path, chat_history=history, user_msg=ChatMessage(content="second"))
    assert history == before
    sent = service.body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Rome"}
    assert (sent[2]["tool_call_id"], sent[2]["content"]) == ("call_a", "sun")


@pytest.mark.needs("tools")
@pytest.mark.parametrize("path", ["predict_and_call", "apredict_and_call"])
async def test_predict_and_call_runs_the_tool(service: Service, path: str) -> None:
    service.says("chat", tool_calls=[CALL], finish_reason="tool_calls")
    llm = service.make()
    result = getattr(llm, path)(TOOLS, user_msg="q")
    assert str(await result if path.startswith("a") else result) == "Paris 3"


class City(BaseModel):
    """A city."""

    name: str
    people: int


ANSWER = json.dumps({"name": "Paris", "people": 2})
STRUCTURED = ("structured_predict", "astructured_predict", "stream_structured_predict", "astream_structured_predict")


async def predicted(llm: Any, path: str) -> list[Any]:
    made = getattr(llm, path)(City, PromptTemplate("Which {what}?"), what="city")
    if path.startswith("astream"):
        return [item async for item in await made]
    if path.startswith("stream"):
        return list(made)
    return [await made if path.startswith("a") else made]


@pytest.mark.needs("structured")
@pytest.mark.parametrize("path", STRUCTURED)
async def test_structured_prediction_returns_the_object_and_tells_it_once(
    service: Service, listener: Listener, path: str
) -> None:
    service.says(path, *ANSWER)
    found = await predicted(service.make(system_prompt="Be brief."), path)
    assert found[-1] == City(name="Paris", people=2)
    assert len(service.bodies) == 1
    assert service.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which city?"},
    ]
    kinds = listener.names("LLM")
    assert kinds[0] == "LLMStructuredPredictStartEvent"
    assert kinds[-1] == "LLMStructuredPredictEndEvent"
    for name in (
        "LLMStructuredPredictStartEvent",
        "LLMStructuredPredictEndEvent",
        "LLMChatStartEvent",
        "LLMChatEndEvent",
    ):
        assert kinds.count(name) == 1, name
    in_progress = kinds.count("LLMStructuredPredictInProgressEvent")
    assert in_progress == (len(found) if "stream" in path else 0)
    assert listener.of("LLMStructuredPredictEndEvent")[0].output == found[-1]


@pytest.mark.needs("structured")
@pytest.mark.parametrize("path", STRUCTURED[2:])
async def test_leaving_a_structured_stream_early_ends_its_connection(service: Service, path: str) -> None:
    emulator = service.emulator
    events = list(service.events(*({"content": piece} for piece in ANSWER)))
    emulator.script(Fault(stream=events, stall_after_chunks=16))
    made = getattr(service.make(), path)(City, PromptTemplate("q"))
    if path.startswith("a"):
        stream = await made
        assert await anext(stream)
        await stream.aclose()
        del stream
    else:
        assert next(made)
        made.close()
    # The rest of the answer is held back, so only our side can have ended the connection.
    await asyncio.to_thread(emulator.wait_until, lambda emulator: emulator.stalled_replies == 0)


@pytest.mark.needs("structured")
async def test_structured_prediction_asks_for_a_schema_and_no_tools(service: Service) -> None:
    service.says("chat", ANSWER)
    await predicted(service.make(), "structured_predict")
    assert service.body["response_format"]["type"] == "json_schema"
    assert not {"tools", "tool_choice"} & set(service.body)


@pytest.mark.needs("images")
async def test_images_are_sent_as_data_uris(service: Service) -> None:
    from llama_index.core.base.llms.types import ImageBlock

    pixel = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    service.says("chat", "a")
    message = ChatMessage(blocks=[TextBlock(text="What?"), ImageBlock(image=pixel, image_mimetype="image/png")])
    await ask(service.make(model="qwen-3.8-27b"), "chat", [message])
    text, image = service.body["messages"][0]["content"]
    assert text == {"type": "text", "text": "What?"}
    assert image["type"] == "image_url"
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
