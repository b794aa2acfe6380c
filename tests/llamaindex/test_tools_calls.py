"""Function calling: which calls come back, whole and while they grow, on every path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ToolCallBlock
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.program.utils import get_program_for_llm
from llama_index.core.prompts import PromptTemplate
from llama_index.core.types import PydanticProgramMode
from pydantic import BaseModel

from cerebras_ext.jsontext import loads_partial
from cerebras_ext.toolcalls import InvalidArgumentsError
from llamaindex_cerebras_ext import tools
from llamaindex_cerebras_ext.tools import selections
from tests.llamaindex.scripted import STREAMS, ask, call, responses, scripted, streamed, whole
from tests.llamaindex.tooling import NOW, TOOL_PATHS, TOOL_STREAMS, TWO, WEATHER, calling, entry, with_tools


@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_calls_are_selections_with_objects_as_arguments(path: str) -> None:
    llm, _ = scripted(TWO)
    response = (await with_tools(llm, path, [WEATHER], allow_parallel_tool_calls=True))[-1]
    assert llm.get_tool_calls_from_response(response) == [
        ToolSelection(tool_id="c1", tool_name="weather", tool_kwargs={"city": "Bern"}),
        ToolSelection(tool_id="c2", tool_name="weather", tool_kwargs={"city": "Rome"}),
    ]


@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_second_call_is_trimmed_where_one_is_allowed(path: str) -> None:
    llm, _ = scripted(TWO)
    for response in await with_tools(llm, path, [WEATHER], allow_parallel_tool_calls=False):
        assert [selection.tool_id for selection in llm.get_tool_calls_from_response(response)] == ["c1"]
        assert len(response.message.additional_kwargs["tool_calls"]) == 1
        assert sum(isinstance(block, ToolCallBlock) for block in response.message.blocks) == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_predict_and_call_runs_one_tool_or_all(is_async: bool) -> None:
    llm, _ = scripted(TWO)
    for parallel, text in ((False, "Bern: sun for 1"), (True, "Bern: sun for 1\n\nRome: sun for 1")):
        kwargs: dict[str, Any] = {"user_msg": "q", "allow_parallel_tool_calls": parallel}
        found = (
            await llm.apredict_and_call([WEATHER], **kwargs) if is_async else llm.predict_and_call([WEATHER], **kwargs)
        )
        assert found.response == text


@pytest.mark.parametrize("arguments", ["", "  ", None, "null", "{}"])
@pytest.mark.parametrize("path", TOOL_PATHS)
async def test_call_without_arguments_is_valid(path: str, arguments: str | None) -> None:
    llm, _ = scripted(calling(entry("c1", "now", arguments)))
    for response in await with_tools(llm, path, [NOW]):
        assert [(item.tool_name, item.tool_kwargs) for item in llm.get_tool_calls_from_response(response)] == [
            ("now", {})
        ]


@pytest.mark.parametrize("path", TOOL_PATHS)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"path": "/tmp/a', "length"),
        ("import os", "tool_calls"),
        ("[1]", "tool_calls"),
        ('{"a": 1} trailing', "tool_calls"),
    ],
)
async def test_malformed_arguments_are_never_called(path: str, arguments: str, reason: str) -> None:
    llm, _ = scripted(calling(entry("c1", "weather", arguments), finish_reason=reason))
    response = (await with_tools(llm, path, [WEATHER]))[-1]
    for strict in (True, False):
        with pytest.raises(InvalidArgumentsError, match="weather") as caught:
            llm.get_tool_calls_from_response(response, error_on_no_tool_call=strict)
        assert isinstance(caught.value, ValueError)
        assert ("token limit" in str(caught.value)) is (reason == "length")
    assert response.message.blocks[-1] == ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs=arguments)


def test_call_with_channel_tokens_in_its_name_is_passed_through() -> None:
    llm, _ = scripted(calling(entry("c1", "f<|channel|>commentary", "{}")))
    (selection,) = llm.get_tool_calls_from_response(llm.chat(ask()))
    assert selection.tool_name == "f<|channel|>commentary"


def test_call_written_as_text_stays_text() -> None:
    text = '{"name": "rm", "arguments": {"p": "/"}}'
    llm, _ = scripted(whole({"content": text}))
    response = llm.chat_with_tools([WEATHER], user_msg="q")
    assert llm.get_tool_calls_from_response(response, error_on_no_tool_call=False) == []
    assert response.message.content == text


def test_no_call_is_an_error_only_where_one_is_expected() -> None:
    llm, _ = scripted(whole({"content": "no"}))
    response = llm.chat(ask())
    assert llm.get_tool_calls_from_response(response, error_on_no_tool_call=False) == []
    with pytest.raises(ValueError, match="Expected at least one tool call"):
        llm.get_tool_calls_from_response(response)


@pytest.mark.parametrize("form", ["blocks", "kwargs", "both"])
def test_call_is_found_once_in_every_form_of_message(form: str) -> None:
    message = ChatMessage(role="assistant")
    if form != "kwargs":
        message.blocks = [ToolCallBlock(tool_call_id="c1", tool_name="f", tool_kwargs='{"a": 1}')]
    if form != "blocks":
        message.additional_kwargs = {"tool_calls": [entry("c1", "f", '{"a": 1}')]}
    found = scripted({})[0].get_tool_calls_from_response(ChatResponse(message=message))
    assert found == [ToolSelection(tool_id="c1", tool_name="f", tool_kwargs={"a": 1})]


def test_arguments_that_look_like_serialised_objects_stay_plain() -> None:
    arguments = {"lc": 1, "type": "secret", "id": ["CEREBRAS_API_KEY"]}
    llm, _ = scripted(calling(entry("c1", "f", json.dumps(arguments))))
    assert llm.get_tool_calls_from_response(llm.chat(ask()))[0].tool_kwargs == arguments


# ---- streams of fragments ----


async def streamed_calls(path: str, *fragments: list[dict[str, Any]]) -> list[list[ToolSelection]]:
    llm, _ = scripted(streamed(*({"tool_calls": entries} for entries in fragments), finish_reason="tool_calls"))
    chunks = await responses(llm, path, ask())
    return [llm.get_tool_calls_from_response(item, error_on_no_tool_call=False) for item in chunks]


@pytest.mark.parametrize("path", STREAMS)
async def test_partial_arguments_grow_and_are_always_objects(path: str) -> None:
    found = await streamed_calls(
        path,
        [call(0, "c1", "weather", "")],
        [call(0, None, None, '{"ci')],
        [call(0, None, None, 'ty": "Be')],
        [call(0, None, None, 'rn", "days":')],
        [call(0, None, None, " 2}")],
    )
    assert [calls[0].tool_kwargs for calls in found] == [
        {}, {}, {"city": "Be"}, {"city": "Bern"}, {"city": "Bern", "days": 2}, {"city": "Bern", "days": 2},
    ]  # fmt: skip
    assert {(calls[0].tool_id, calls[0].tool_name) for calls in found} == {("c1", "weather")}


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize(
    "fragments",
    [
        [[call(0, "a", "f"), call(1, "b", "f")], [call(1, None, None, '{"a":2}')], [call(0, None, None, '{"a":1}')]],
        [[call(0, "a", "f", '{"a":1}')], [call(0, "b", "f", '{"a":2}')]],
        [[call(None, "a", "f", '{"a":1}')], [call(None, "b", "f", '{"a":2}')]],
        [
            [call(3, "a", "f", '{"a"'), call(7, "b", "f", '{"a"')],
            [call(7, None, None, ":2}"), call(3, None, None, ":1}")],
        ],
        [[call(0, "a", "f", '{"a"')], [call(1, "b", "f", '{"a":2}')], [call(0, "a", None, ":1}")]],
    ],
    ids=["interleaved", "same index", "no index", "odd indexes", "id repeated"],
)
async def test_parallel_calls_are_told_apart(path: str, fragments: Any) -> None:
    final = (await streamed_calls(path, *fragments))[-1]
    assert [(item.tool_id, item.tool_name, item.tool_kwargs) for item in final] == [
        ("a", "f", {"a": 1}),
        ("b", "f", {"a": 2}),
    ]


@pytest.mark.parametrize("path", STREAMS)
async def test_repeated_and_placeholder_ids_do_not_grow(path: str) -> None:
    found = await streamed_calls(
        path,
        [call(0, "call_1", "f", '{"a"')],
        [call(0, "call_1", None, ":")],
        [call(0, "null", None, "1")],
        [call(0, "", None, "}")],
    )
    assert {item.tool_id for calls in found for item in calls} == {"call_1"}
    assert found[-1][0].tool_kwargs == {"a": 1}


@pytest.mark.parametrize("path", STREAMS)
async def test_null_and_missing_arguments_are_tolerated(path: str) -> None:
    nothing = {"index": 0, "function": {"arguments": None}}
    found = await streamed_calls(path, [call(0, "c1", "f")], [nothing], [call(0, None, None, '{"a":1}')])
    assert found[-1][0].tool_kwargs == {"a": 1}


@pytest.mark.parametrize("path", TOOL_STREAMS)
async def test_flexible_objects_come_out_of_core_by_streamed_tool_calls(path: str) -> None:
    class Flower(BaseModel):
        """A flower."""

        name: str
        petals: int

    pieces = ["", '{"name": "ro', 'se", "pet', 'als": 5}']
    deltas = [
        {"tool_calls": [call(0, "c1" if not number else None, "Flower" if not number else None, piece)]}
        for number, piece in enumerate(pieces)
    ]
    llm, wire = scripted(
        streamed(*deltas, finish_reason="tool_calls"), pydantic_program_mode=PydanticProgramMode.FUNCTION
    )
    program = get_program_for_llm(Flower, PromptTemplate("q"), llm, pydantic_program_mode=PydanticProgramMode.FUNCTION)
    if path == "astream_chat_with_tools":
        objects = [item async for item in await program.astream_call()]
    else:
        objects = list(program.stream_call())
    assert objects[1].name == "ro"
    assert objects[-1] == Flower(name="rose", petals=5)
    assert wire.body["stream"] is True


# ---- reading while a call grows ----


def test_long_arguments_are_read_in_proportion_to_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(text: str) -> Any:
        read.append(len(text))
        return loads_partial(text)

    monkeypatch.setattr(tools, "loads_partial", counted)
    text = json.dumps({"path": "/a", "text": "x" * 400_000})
    reader = tools.PartialArguments()
    found = {}
    for end in range(0, len(text), 100):
        found = reader.read("c", text[:end])
        assert end < 20 or found["path"] == "/a"
    assert sum(read) < 50 * len(text), "reading anew at every chunk would be 2000 times the length"
    assert len(found["text"]) > 0.96 * 400_000


def test_growing_call_is_never_read_from_another_call_of_its_id() -> None:
    reader = tools.PartialArguments()
    first, second = (json.dumps({"text": letter * 10_000}) for letter in "ab")
    assert set(reader.read("call_0", first)["text"]) == {"a"}
    assert set(reader.read("call_0", second)["text"]) == {"b"}


def test_what_was_read_is_dropped_with_the_finished_call() -> None:
    reader = tools.PartialArguments()
    for number in range(1000):
        reader.read(str(number), json.dumps({"text": "a" * 9_000}))
    assert len(reader._known) <= 64
    reader.read("c", json.dumps({"text": "a" * 9_000}))
    block = ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs="{}")
    selections(ChatResponse(message=ChatMessage(role="assistant", blocks=[block])), False, reader)
    assert "c" not in reader._known
