"""Tool calls: what comes back on every path, and how it goes back into history."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from langchain_cerebras_ext.errors import BadRequestError
from tests.langchain.stub import PATHS, Stub, ask, call, chunks, say


@tool
def weather(city: str) -> str:
    """Weather."""
    return f"sun in {city}"


@tool
def now() -> str:
    """Time."""
    return "noon"


@pytest.mark.parametrize("path", PATHS)
async def test_calls_come_back_the_same_on_every_path(path: str) -> None:
    stub = Stub(call(("weather", '{"city": "Oslo"}'), ("now", "{}")))
    message = await ask(stub.model().bind_tools([weather, now]), path)
    assert [(one["id"], one["name"], one["args"]) for one in message.tool_calls] == [
        ("c0", "weather", {"city": "Oslo"}),
        ("c1", "now", {}),
    ]
    assert message.invalid_tool_calls == []
    assert message.response_metadata["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("path", ["stream", "astream"])
async def test_streamed_calls_have_integer_indexes(path: str) -> None:
    stub = Stub(call(("weather", '{"city": "Oslo"}'), ("now", "{}")))
    parts = await chunks(stub.model().bind_tools([weather, now]), path)
    indexes = [one["index"] for part in parts for one in part.tool_call_chunks]
    assert set(indexes) == {0, 1}
    assert all(type(index) is int for index in indexes)
    named = [one["name"] for part in parts for one in part.tool_call_chunks if one["name"]]
    assert named == ["weather", "now"]


@pytest.mark.parametrize("arguments", ["", "  ", "null", None])
@pytest.mark.parametrize("path", PATHS)
async def test_a_call_without_arguments_is_valid(arguments: str | None, path: str) -> None:
    stub = Stub(call(("now", arguments)), piece=8)
    model = stub.model()
    message = await ask(model.bind_tools([now]), path)
    assert [one["args"] for one in message.tool_calls] == [{}]
    stub.answers = [say("x")]
    model.invoke([HumanMessage("q"), message, ToolMessage("noon", tool_call_id="c0")])
    assert stub.bodies[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("name", "arguments", "finish"),
    [
        ("python", "import os", "tool_calls"),
        ("weather", '{"city": "/tmp/a', "length"),
        ("weather", '{"city": ["a", {"b"', "length"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_malformed_arguments_are_an_invalid_call_and_replay_as_json(
    name: str, arguments: str, finish: str, path: str
) -> None:
    stub = Stub(call((name, arguments), finish=finish))
    model = stub.model()
    message = await ask(model.bind_tools([weather]), path)
    assert message.tool_calls == []
    (invalid,) = message.invalid_tool_calls
    assert (invalid["id"], invalid["name"]) == ("c0", name)
    assert invalid["args"].startswith(arguments)
    assert message.response_metadata["finish_reason"] == finish
    stub.answers = [say("x")]
    model.invoke([HumanMessage("q"), message, ToolMessage("bad", tool_call_id="c0", status="error")])
    (replayed,) = stub.bodies[1]["messages"][1]["tool_calls"]
    assert replayed["id"] == "c0"
    assert isinstance(json.loads(replayed["function"]["arguments"]), dict)


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_with_channel_tokens_passes_unchanged(path: str) -> None:
    stub = Stub(call(("weather<|channel|>commentary", "{}")))
    message = await ask(stub.model().bind_tools([weather]), path)
    assert [one["name"] for one in message.tool_calls] == ["weather<|channel|>commentary"]


@pytest.mark.parametrize("text", ['{"name": "weather", "arguments": {"city": "/"}}', "<tool_call>weather</tool_call>"])
@pytest.mark.parametrize("path", PATHS)
async def test_text_that_looks_like_a_call_stays_text(text: str, path: str) -> None:
    message = await ask(Stub(say(text)).model().bind_tools([weather]), path)
    assert message.content == text
    assert message.tool_calls == message.invalid_tool_calls == []


def test_a_tool_result_goes_back_with_its_id_and_without_a_name() -> None:
    stub = Stub(say("x"))
    turn = AIMessage("", tool_calls=[{"id": "t1", "name": "weather", "args": {"city": "Oslo"}}])
    result = ToolMessage("sun", name="weather", tool_call_id="t1", status="success", artifact={"a": 1})
    stub.model().bind_tools([weather]).invoke([HumanMessage("q"), turn, result])
    assert stub.bodies[0]["messages"][1:] == [
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
            ],
        },
        {"role": "tool", "content": "sun", "tool_call_id": "t1"},
    ]


def test_the_tools_bound_are_base_tools_still_callable() -> None:
    assert isinstance(weather, BaseTool)
    assert weather.invoke({"city": "Oslo"}) == "sun in Oslo"


# ---- how servers number the pieces of calls ----


def _piece(index: Any = None, id_: str | None = None, name: str | None = None, args: str | None = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    piece = {"index": index, "id": id_, "function": function}
    return {key: value for key, value in piece.items() if value is not None}


LOOSE: dict[str, tuple[list[Any], list[tuple[str | None, str, Any]]]] = {
    "two calls at one index": (
        [[_piece(0, "a", "f", "{}")], [_piece(0, "b", "g", "{}")]],
        [("a", "f", {}), ("b", "g", {})],
    ),
    "an index that starts at three": ([[_piece(3, "z", "f", "{}")]], [("z", "f", {})]),
    "no id": ([[_piece(0, None, "f", '{"a"')], [_piece(0, None, None, ":1}")]], [(None, "f", {"a": 1})]),
    "an id on every piece": (
        [[_piece(0, "call_1", "f", '{"a"')], [_piece(0, "call_1", None, ":1}")], [_piece(0, "null", "f", "")]],
        [("call_1", "f", {"a": 1})],
    ),
    "two calls in one delta, pieces in any order": (
        [
            [_piece(0, "a", "f"), _piece(1, "b", "f")],
            [_piece(1, None, None, '{"a":2}')],
            [_piece(0, None, None, '{"a":1}')],
        ],
        [("a", "f", {"a": 1}), ("b", "f", {"a": 2})],
    ),
    "no index": ([[_piece(None, "a", "f", '{"a":')], [_piece(None, None, None, "1}")]], [("a", "f", {"a": 1})]),
}


@pytest.mark.parametrize("path", ["stream", "astream", "events"])
@pytest.mark.parametrize("name", LOOSE)
async def test_pieces_of_calls_find_together_however_they_are_numbered(name: str, path: str) -> None:
    deltas, expected = LOOSE[name]
    head = {"id": "1", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    choices = [{"index": 0, "delta": {"tool_calls": calls}} for calls in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    text = "".join(f"data: {json.dumps({**head, 'choices': [choice]})}\n\n" for choice in choices)
    stub = Stub(httpx.Response(200, text=text, headers={"content-type": "text/event-stream"}))
    if path == "events":
        message = stub.model().stream_events("q", version="v3").output
    else:
        message = await ask(stub.model(), path)
    assert [(one["name"], one["args"]) for one in message.tool_calls] == [(name, args) for _, name, args in expected]
    for one, (id_, _, _) in zip(message.tool_calls, expected, strict=True):
        assert one["id"] == id_ if id_ else one["id"]
    assert message.invalid_tool_calls == []


# ---- results ----


@pytest.mark.parametrize(
    ("content", "sent"),
    [("sun", "sun"), ([{"a": 1}], '{"a": 1}'), ([{"type": "text", "text": "sun"}], [{"type": "text", "text": "sun"}])],
    ids=str,
)
def test_a_result_is_a_text_or_text_parts(content: Any, sent: Any) -> None:
    stub = Stub(say("x"))
    turn = AIMessage("", tool_calls=[{"id": "t1", "name": "weather", "args": {}}])
    stub.model().invoke([HumanMessage("q"), turn, ToolMessage(content, tool_call_id="t1")])
    found = stub.bodies[0]["messages"][2]["content"]
    assert found == sent or json.loads(found) in (content, content[0])


def test_a_refused_history_without_the_call_of_a_result_names_the_message() -> None:
    stub = Stub(httpx.Response(400, text=""))
    with pytest.raises(BadRequestError, match="message 1 is a tool result with id 'gone'"):
        stub.model().invoke([HumanMessage("q"), ToolMessage("7", tool_call_id="gone"), HumanMessage("q")])
