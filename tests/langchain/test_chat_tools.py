"""Tool calls of the chat model in streams and without, and blocks of output version v1."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from langchain_cerebras_ext.partial_json import breaking_suffix
from tests.langchain.service import ALL_PATHS, RICH, Service, both, chunks_of, delta, end, merged, tool_delta, whole

STREAM_PATHS = [path for path in ALL_PATHS if "stream" in path]

# ---- tool calls ----

TOOL_STREAMS: dict[str, tuple[list[Any], list[tuple[str | None, str, dict[str, Any]]]]] = {
    "fragments": (
        [[tool_delta(0, "a", "f")], [tool_delta(0, arguments='{"x"')], [tool_delta(0, arguments=": 1}")]],
        [("a", "f", {"x": 1})],
    ),
    "two calls with one index stay apart": (
        [[tool_delta(0, "a", "f", "{}")], [tool_delta(0, "b", "g", "{}")]], [("a", "f", {}), ("b", "g", {})],
    ),
    "interleaved fragments go to their call": (
        [
            [tool_delta(0, "a", "f"), tool_delta(1, "b", "f")],
            [tool_delta(1, arguments='{"a":2}')],
            [tool_delta(0, arguments='{"a":1}')],
        ],
        [("a", "f", {"a": 1}), ("b", "f", {"a": 2})],
    ),
    "the first index need not be 0": ([[tool_delta(3, "z", "f", "{}")]], [("z", "f", {})]),
    "a missing index": (
        [[tool_delta(None, "z", "f", '{"a"')], [tool_delta(None, arguments=":1}")]], [("z", "f", {"a": 1})],
    ),
    "a repeated id is not glued": (
        [[tool_delta(0, "c_1", "f", '{"a"')], [tool_delta(0, "c_1", arguments=":1}")]], [("c_1", "f", {"a": 1})],
    ),
    "a missing id is made up once": ([[tool_delta(0, None, "f", "{}")]], [(None, "f", {})]),
    "no arguments: empty": ([[tool_delta(0, "a", "now", "")]], [("a", "now", {})]),
    "no arguments: null": ([[tool_delta(0, "a", "now", None)]], [("a", "now", {})]),
    "no arguments: the text null": ([[tool_delta(0, "a", "now", "null")]], [("a", "now", {})]),
    "no arguments: blanks": ([[tool_delta(0, "a", "now", " ")]], [("a", "now", {})]),
    "null and blanks inside of arguments are kept": (
        [[tool_delta(0, "a", "f", '{"a":')], [tool_delta(0, arguments="null")], [tool_delta(0, arguments=',"b":"x')],
         [tool_delta(0, arguments=" ")], [tool_delta(0, arguments='y"}')]],
        [("a", "f", {"a": None, "b": "x y"})],
    ),
    "line breaks inside of a string": ([[tool_delta(0, "a", "f", '{"x": "a\nb"}')]], [("a", "f", {"x": "a\nb"})]),
    "an odd name passes unchanged": (
        [[tool_delta(0, "a", "f<|channel|>commentary", "{}")]], [("a", "f<|channel|>commentary", {})],
    ),
    "an object as arguments": ([[tool_delta(0, "a", "f", {"x": 1})]], [("a", "f", {"x": 1})]),
    "keys of langchain's serialisation are data": (
        [[tool_delta(0, "a", "f", '{"lc": 1, "type": "secret", "id": ["CEREBRAS_API_KEY"]}')]],
        [("a", "f", {"lc": 1, "type": "secret", "id": ["CEREBRAS_API_KEY"]})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("output_version", [None, "v1"])
@pytest.mark.parametrize("path", STREAM_PATHS)
@pytest.mark.parametrize("case", TOOL_STREAMS)
async def test_streamed_tool_calls(case: str, path: str, output_version: str | None) -> None:
    deltas, expected = TOOL_STREAMS[case]
    events = [*(delta(tool_calls=calls) for calls in deltas), end("tool_calls")]
    message = await ALL_PATHS[path](Service(events).model(output_version=output_version), "hi")
    found = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
    ids = [call["id"] for call in message.tool_calls]
    assert [
        (None if wanted[0] is None else call[0], *call[1:]) for call, wanted in zip(found, expected, strict=True)
    ] == expected
    assert all(ids)
    assert message.invalid_tool_calls == []
    blocks = [block for block in message.content_blocks if block["type"] == "tool_call"]
    assert [block["id"] for block in blocks] == ids


@pytest.mark.parametrize("arguments", ["", None, "null", " ", "absent"])
@pytest.mark.parametrize("path", ALL_PATHS)
async def test_a_call_without_arguments_is_valid_on_every_path(path: str, arguments: str | None) -> None:
    piece, call = tool_delta(0, "a", "now", arguments), {"id": "a", "function": {"name": "now", "arguments": arguments}}
    if arguments == "absent":
        del piece["function"]["arguments"]
        del call["function"]["arguments"]  # type: ignore[attr-defined]
    service = Service([delta(tool_calls=[piece]), end("tool_calls")], whole({"tool_calls": [call]}))
    message = await ALL_PATHS[path](service.model(), "hi")
    assert message.tool_calls == [{"type": "tool_call", "id": "a", "name": "now", "args": {}}]
    assert message.invalid_tool_calls == []


CUT = [
    '{"path": "/tmp/a',
    '{"path": "/tmp/a\\',
    '{"a": 1',
    '{"a": ',
    "{",
    '{"a": [1, {"b": "x',
    '{"a": 1} rest',
    "{}{}",
]


@pytest.mark.parametrize("arguments", CUT)
@pytest.mark.parametrize("path", ALL_PATHS)
async def test_a_call_that_was_cut_off_is_never_valid(path: str, arguments: str) -> None:
    pieces = [delta(tool_calls=[tool_delta(0, "a", "rm")])]
    pieces += [delta(tool_calls=[tool_delta(0, arguments=char)]) for char in arguments]
    call = {"id": "a", "type": "function", "function": {"name": "rm", "arguments": arguments}}
    answer = whole({"tool_calls": [call]}, finish_reason="length")
    message = await ALL_PATHS[path](Service([*pieces, end("length")], answer).model(), "hi")
    assert message.tool_calls == []
    (invalid,) = message.invalid_tool_calls
    assert (invalid["id"], invalid["name"]) == ("a", "rm")
    assert invalid["args"].startswith(arguments)
    assert len(invalid["args"]) - len(arguments) <= 3
    assert message.response_metadata["finish_reason"] == "length"


@pytest.mark.parametrize("arguments", ["import os", "[1]", "5", '{"a": 1}]'])
@pytest.mark.parametrize("path", ALL_PATHS)
async def test_arguments_that_are_no_object_are_kept_as_they_are(path: str, arguments: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "python", "arguments": arguments}}
    events = [delta(tool_calls=[tool_delta(0, "a", "python", arguments)]), end("tool_calls")]
    message = await ALL_PATHS[path](Service(events, whole({"tool_calls": [call]})).model(), "hi")
    assert message.tool_calls == []
    assert [(call["id"], call["args"]) for call in message.invalid_tool_calls] == [("a", arguments)]


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_text_that_looks_like_a_call_stays_text(path: str) -> None:
    text = '{"name":"rm","arguments":{"p":"/"}}'
    message = await ALL_PATHS[path](Service([delta(content=text), end()], whole({"content": text})).model(), "hi")
    assert message.tool_calls == []
    assert message.text == text


@both
async def test_tool_call_chunks_have_integer_indexes_and_name_and_id_once(is_async: bool) -> None:
    pieces = [piece for chunk in await chunks_of(Service(RICH).model(), is_async) for piece in chunk.tool_call_chunks]
    assert [piece["index"] for piece in pieces] == [0, 0, 1, 0]
    assert [piece["id"] for piece in pieces] == ["c1", None, "c2", None]
    assert [piece["name"] for piece in pieces] == ["f", None, "g", None]


def test_breaking_suffix_is_empty_for_what_needs_none() -> None:
    for arguments in ("", "null", "{}", '{"a": 1}', "import os", "[1", "5"):
        assert breaking_suffix(arguments) == ""


# ---- output version v1 ----


@both
async def test_blocks_of_v1_have_their_own_indexes_and_do_not_collide(is_async: bool) -> None:
    chunks = await chunks_of(Service(RICH).model(output_version="v1"), is_async)
    indexes = Counter(block["index"] for chunk in chunks for block in chunk.content)  # type: ignore[index]
    assert indexes.keys() == {"lc_reasoning", "lc_text", "lc_tc_0", "lc_tc_1"}
    message = merged(chunks)
    blocks = [{key: value for key, value in block.items() if key != "index"} for block in message.content]  # type: ignore[union-attr]
    assert blocks == [
        {"type": "reasoning", "reasoning": "because"},
        {"type": "text", "text": "Answer and"},
        {"type": "tool_call", "id": "c1", "name": "f", "args": {"a": 1}},
        {"type": "tool_call", "id": "c2", "name": "g", "args": {}},
    ]
    assert message.content_blocks == message.content
    assert message.response_metadata["output_version"] == "v1"


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_v1_blocks_are_the_same_on_every_path(path: str) -> None:
    calls = [
        {"id": "c1", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"id": "c2", "function": {"name": "g", "arguments": "{}"}},
    ]
    answer = whole({"content": "Answer and", "reasoning": "because", "tool_calls": calls}, finish_reason="tool_calls")
    message = await ALL_PATHS[path](Service(RICH, answer).model(output_version="v1"), "hi")
    blocks = [{key: value for key, value in block.items() if key != "index"} for block in message.content]
    assert [block["type"] for block in blocks] == ["reasoning", "text", "tool_call", "tool_call"]
    assert blocks[2] == {"type": "tool_call", "id": "c1", "name": "f", "args": {"a": 1}}
    assert message.additional_kwargs == {"reasoning_content": "because"}
    assert message.tool_calls[1]["name"] == "g"


async def test_v3_stream_hands_out_reasoning_text_and_calls() -> None:
    stream = Service(RICH).model().stream_events("hi", version="v3")
    assert "".join(stream.reasoning) == "because"
    assert "".join(stream.text) == "Answer and"
    assert [call["name"] for call in stream.output.tool_calls] == ["f", "g"]
    twin = await Service(RICH).model().astream_events("hi", version="v3")
    assert await twin.reasoning == "because"
