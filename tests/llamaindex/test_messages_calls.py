"""Tool calls and their results in history."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ToolCallBlock,
)

from cerebras_ext.errors import RequestValidationError
from llamaindex_cerebras_ext.to_wire import to_wire
from tests.llamaindex.messaging import called, result, wire
from tests.llamaindex.scripted import ask, scripted


def test_turn_that_only_calls_tools_has_no_content() -> None:
    messages = wire(
        *ask(), called(ToolCallBlock(tool_call_id="t1", tool_name="lookup", tool_kwargs={"k": 1})), result("7", "t1")
    )
    assert messages[1] == {
        "role": "assistant",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "lookup", "arguments": '{"k": 1}'}}],
    }
    assert messages[2] == {"role": "tool", "content": "7", "tool_call_id": "t1"}


def test_text_beside_tool_calls_is_kept() -> None:
    assert wire(called(ToolCallBlock(tool_call_id="t", tool_name="f"), text="wait"))[0]["content"] == "wait"


def test_call_in_block_and_kwargs_is_sent_once() -> None:
    entry = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    block = ToolCallBlock(tool_call_id="t1", tool_name="f", tool_kwargs={"a": 1})
    assert wire(called(block, additional_kwargs={"tool_calls": [entry]}))[0]["tool_calls"] == [entry]


@pytest.mark.parametrize("kwargs", [{"a": 1}, '{"a": 1}'])
def test_block_arguments_may_be_object_or_text(kwargs: Any) -> None:
    block = ToolCallBlock(tool_call_id="t1", tool_name="f", tool_kwargs=kwargs)
    assert wire(called(block))[0]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


class SdkFunction:
    name = "f"
    arguments = '{"a": 1}'


class SdkCall:
    id = "t1"
    function = SdkFunction()


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "t1", "type": "tool_use", "name": "f", "input": {"a": 1}},
        {"id": "t1", "function": {"name": "f", "arguments": {"a": 1}}},
        SdkCall(),
    ],
    ids=["openai", "anthropic", "ollama", "sdk object"],
)
def test_history_of_another_integration_keeps_its_calls(entry: Any) -> None:
    message = ChatMessage(role="assistant", additional_kwargs={"tool_calls": [entry]})
    assert wire(message)[0]["tool_calls"] == [
        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    ]


def test_entry_that_is_no_call_is_refused() -> None:
    with pytest.raises(RequestValidationError, match="entry without a name"):
        to_wire([ChatMessage(role="assistant", additional_kwargs={"tool_calls": [{"id": "t"}]})])


def test_tool_result_without_blocks_is_an_empty_text() -> None:
    messages = wire(
        called(ToolCallBlock(tool_call_id="t", tool_name="f")),
        ChatMessage(role="tool", additional_kwargs={"tool_call_id": "t"}),
    )
    assert messages[1] == {"role": "tool", "content": "", "tool_call_id": "t"}


def test_ids_that_repeat_across_turns_are_told_apart() -> None:
    turn = [called(ToolCallBlock(tool_call_id="call_0", tool_name="f")), result("r", "call_0")]
    messages = wire(*ask(), *turn, *turn, *turn)
    called_ids = [message["tool_calls"][0]["id"] for message in messages if message["role"] == "assistant"]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert called_ids == answered
    assert called_ids[0] == "call_0"
    assert len(set(called_ids)) == 3


def test_same_id_twice_in_one_turn_is_paired_by_position() -> None:
    messages = wire(
        called(ToolCallBlock(tool_call_id="x", tool_name="f"), ToolCallBlock(tool_call_id="x", tool_name="g")),
        result("of f", "x"),
        result("of g", "x"),
    )
    first, second = (call["id"] for call in messages[0]["tool_calls"])
    assert first != second
    assert [(message["tool_call_id"], message["content"]) for message in messages[1:]] == [
        (first, "of f"),
        (second, "of g"),
    ]


def test_calls_without_ids_get_some_and_their_results_follow() -> None:
    blocks = [ToolCallBlock(tool_name="f"), ToolCallBlock(tool_name="g")]
    messages = wire(called(*blocks), result("1"), result("2"))
    ids = [call["id"] for call in messages[0]["tool_calls"]]
    assert [message["tool_call_id"] for message in messages[1:]] == ids
    assert all(ids)
    assert len(set(ids)) == 2
    assert wire(called(*blocks))[0]["tool_calls"] == messages[0]["tool_calls"], "ids must not break prompt caching"


def test_orphan_result_is_sent_as_it_is_and_the_refusal_names_it() -> None:
    llm, service = scripted(httpx.Response(400, content=b""))
    with pytest.raises(Exception, match=r"message 1 .*'gone'"):
        llm.chat([*ask(), result("7", "gone"), *ask()])
    assert service.body["messages"][1] == {"role": "tool", "content": "7", "tool_call_id": "gone"}


def test_result_that_answers_nothing_needs_an_id() -> None:
    with pytest.raises(RequestValidationError, match="tool_call_id"):
        to_wire([*ask(), result("7")])


def test_direct_return_after_a_tool_result_is_a_plain_turn() -> None:
    # FunctionAgent writes this for tools with return_direct.
    messages = wire(
        called(ToolCallBlock(tool_call_id="t", tool_name="f")),
        result("7", "t"),
        ChatMessage(role="assistant", content="7", additional_kwargs={"tool_call_id": "t"}),
    )
    assert messages[2] == {"role": "assistant", "content": "7"}


@pytest.mark.parametrize("arguments", ['{"p": ', "import os", "[1]"])
def test_malformed_call_replays_as_json(arguments: str) -> None:
    block = ToolCallBlock(tool_call_id="a", tool_name="f", tool_kwargs=arguments)
    sent = wire(called(block), result("bad json", "a"))[0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"invalid_arguments": arguments}


@pytest.mark.parametrize("arguments", ["", "  ", "null", {}])
def test_call_without_arguments_replays_as_an_empty_object(arguments: Any) -> None:
    block = ToolCallBlock(tool_call_id="a", tool_name="now", tool_kwargs=arguments)
    assert wire(called(block))[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_tool_names_are_written_as_they_were_declared_to_the_service() -> None:
    assert (
        wire(called(ToolCallBlock(tool_call_id="a", tool_name="G[int]")))[0]["tool_calls"][0]["function"]["name"]
        == "G_int_"
    )


def test_models_own_text_is_replayed_byte_for_byte() -> None:
    entry = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1,  "b":"ü"}'}}
    block = ToolCallBlock(tool_call_id="t1", tool_name="f", tool_kwargs={"a": 1, "b": "ü"})
    assert wire(called(block, additional_kwargs={"tool_calls": [entry]}))[0]["tool_calls"] == [entry]


def test_edited_block_wins_over_the_kept_text() -> None:
    entry = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    block = ToolCallBlock(tool_call_id="t1", tool_name="f", tool_kwargs={"a": 2})
    sent = wire(called(block, additional_kwargs={"tool_calls": [entry]}))[0]["tool_calls"]
    assert sent[0]["function"]["arguments"] == '{"a": 2}'


def test_text_with_line_breaks_in_strings_is_sent_as_json() -> None:
    text = '{"code": "a\nb"}'
    entry = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": text}}
    block = ToolCallBlock(tool_call_id="t1", tool_name="f", tool_kwargs={"code": "a\nb"})
    sent = wire(called(block, additional_kwargs={"tool_calls": [entry]}))[0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"code": "a\nb"}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
@pytest.mark.parametrize("extra", [{}, {"name": "n"}])
def test_arguments_that_json_has_no_form_for_are_refused_by_the_name_of_the_call(value: Any, extra: Any) -> None:
    block = ToolCallBlock(tool_call_id="a", tool_name="lookup", tool_kwargs={"k": value})
    with pytest.raises(RequestValidationError, match="call of 'lookup'"):
        to_wire([*ask(), called(block, additional_kwargs=extra)])
