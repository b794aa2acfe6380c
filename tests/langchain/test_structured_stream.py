"""Structured output while it streams: partial objects, and the whole one at the end."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessageChunk
from pydantic import BaseModel, Field

from langchain_cerebras_ext import structured_parser
from langchain_cerebras_ext.errors import OutputTruncatedError
from tests.langchain.stub import Stub, call, chunks, say

STREAMS = ("stream", "astream")


class Joke(BaseModel):
    """A joke."""

    setup: str
    rating: int | None = None


SCHEMA = Joke.model_json_schema()


def answering(text: str, method: str, **more: Any) -> dict[str, Any]:
    return call(("Joke", text), **more) if method == "function_calling" else say(text, **more)


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_a_dictionary_grows(method: Any, path: str) -> None:
    stub = Stub(answering('{"setup": "abcdef", "rating": 3}', method), piece=4)
    parts = await chunks(stub.model().with_structured_output(SCHEMA, method=method), path)
    assert parts[0] == {}
    assert parts[-1] == {"setup": "abcdef", "rating": 3}
    assert len(parts) >= 4
    setups = [part["setup"] for part in parts if "setup" in part]
    assert all("abcdef".startswith(setup) for setup in setups)
    assert setups == sorted(setups, key=len)
    assert stub.bodies[0]["stream"] is True


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_instances_come_as_soon_as_they_are_valid(method: Any, path: str) -> None:
    stub = Stub(answering('{"setup": "abcdef", "rating": 3}', method), piece=4)
    parts = await chunks(stub.model().with_structured_output(Joke, method=method), path)
    assert all(isinstance(part, Joke) for part in parts)
    assert len(parts) > 2
    assert parts[-1] == Joke(setup="abcdef", rating=3)
    assert parts.count(parts[-1]) == 1


@pytest.mark.parametrize("path", STREAMS)
async def test_only_the_call_of_the_schema_counts(path: str) -> None:
    stub = Stub(call(("other", '{"setup": "no"}'), ("Joke", '{"setup": "yes"}'), ("Joke", '{"setup": "late"}')))
    parts = await chunks(stub.model().with_structured_output(SCHEMA, method="function_calling"), path)
    assert parts[-1] == {"setup": "yes"}
    assert all("yes".startswith(part.get("setup", "")) for part in parts)


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_a_model_that_does_not_stream_yields_the_object_once(method: Any, path: str) -> None:
    stub = Stub(answering('{"setup": "abcdef"}', method))
    structured = stub.model(disable_streaming=True).with_structured_output(Joke, method=method)
    assert await chunks(structured, path) == [Joke(setup="abcdef")]
    assert "stream" not in stub.bodies[0]


@pytest.mark.parametrize("path", STREAMS)
async def test_a_list_at_the_root_grows(path: str) -> None:
    stub = Stub(say('{"value": ["abc", "def"]}'), piece=4)
    parts = await chunks(stub.model().with_structured_output(list[str]), path)
    assert parts[-1] == ["abc", "def"]
    assert len(parts) > 2


@pytest.mark.parametrize("path", STREAMS)
async def test_a_single_value_comes_once_it_is_whole(path: str) -> None:
    stub = Stub(say('{"value": 1234567}'), piece=2)
    assert await chunks(stub.model().with_structured_output(int), path) == [1234567]


@pytest.mark.parametrize("path", STREAMS)
async def test_thoughts_in_front_are_no_partial_objects(path: str) -> None:
    stub = Stub(say('<think>{"setup": "no"}</think>{"setup": "yes"}'), piece=5)
    parts = await chunks(stub.model().with_structured_output(SCHEMA), path)
    assert parts[-1] == {"setup": "yes"}
    assert all("yes".startswith(part.get("setup", "")) for part in parts)


class Long(BaseModel):
    text: str = Field(min_length=6)


@pytest.mark.parametrize("path", STREAMS)
async def test_a_constraint_that_a_part_breaks_is_for_the_whole(path: str) -> None:
    stub = Stub(say('{"text": "abcdef"}'), piece=4)
    assert await chunks(stub.model().with_structured_output(Long), path) == [Long(text="abcdef")]


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize(
    ("text", "finish", "error"),
    [('{"setup": "ab", "rat', "length", OutputTruncatedError), ('{"setup": "ab"} x', "stop", OutputParserException)],
)
async def test_what_was_yielded_does_not_hide_a_bad_end(
    text: str, finish: str, error: type[Exception], method: Any, path: str
) -> None:
    stub = Stub(answering(text, method, finish=finish))
    with pytest.raises(error):
        await chunks(stub.model().with_structured_output(SCHEMA, method=method), path)


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
async def test_include_raw_streams_the_chunks_and_then_the_object(method: Any, path: str) -> None:
    stub = Stub(answering('{"setup": "abcdef"}', method), piece=4)
    parts = await chunks(stub.model().with_structured_output(Joke, method=method, include_raw=True), path)
    assert all(isinstance(part["raw"], AIMessageChunk) for part in parts[:-1])
    assert parts[-1] == {"parsed": Joke(setup="abcdef"), "parsing_error": None}
    assert len(parts) > (1 if method == "json_mode" else 3)


@pytest.mark.parametrize("path", STREAMS)
async def test_include_raw_streams_a_fault_as_the_last_part(path: str) -> None:
    parts = await chunks(Stub(say("no")).model().with_structured_output(Joke, include_raw=True), path)
    assert parts[-1]["parsed"] is None
    assert isinstance(parts[-1]["parsing_error"], OutputParserException)


async def test_a_chain_passes_partial_objects_on() -> None:
    stub = Stub(say('{"setup": "abcdef"}'), piece=4)
    chain = stub.model().with_structured_output(SCHEMA).pick("setup")
    parts = [part async for part in chain.astream("q")]
    assert parts[-1] == "abcdef"
    assert len(parts) > 1


async def test_events_show_the_parts() -> None:
    stub = Stub(say('{"setup": "abcdef"}'), piece=4)
    structured = stub.model().with_structured_output(SCHEMA)
    events = [event async for event in structured.astream_events("q", version="v2")]
    parts = [event["data"]["chunk"] for event in events if event["event"] == "on_parser_stream"]
    assert parts[-1] == {"setup": "abcdef"}
    assert [event["event"] for event in events].count("on_chat_model_start") == 1


def test_chunks_are_not_added_up_while_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise AssertionError("chunks were added up, which costs more with every chunk")

    monkeypatch.setattr(AIMessageChunk, "__add__", refused)
    parser: Any = Stub(say("x")).model().with_structured_output(SCHEMA)
    pieces = [AIMessageChunk(content=piece) for piece in ('{"setup": "a', "b", 'c"}')]
    assert list(parser.last._transform(iter(pieces)))[-1] == {"setup": "abc"}


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
async def test_a_long_answer_is_read_in_proportion_to_its_length(
    method: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    for name in ("partial_json_answer", "loads_partial"):
        reader = getattr(structured_parser, name)

        def counted(text: str, reader: Any = reader) -> Any:
            read.append(len(text))
            return reader(text)

        monkeypatch.setattr(structured_parser, name, counted)
    setup = "x" * 40_000
    stub = Stub(answering(json.dumps({"setup": setup}), method), piece=8)
    parts = await chunks(stub.model().with_structured_output(SCHEMA, method=method), path)
    assert parts[-1] == {"setup": setup}
    assert len(read) < 500
    assert max(later - earlier for earlier, later in itertools.pairwise(read)) < 40_000 / 30
    assert sum(read) < 50 * 40_000
