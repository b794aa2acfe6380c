"""Chunks that are made as copies are equal to chunks made by the normal constructors, in every part."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from langchain_core.load import dumps
from langchain_core.messages import AIMessageChunk, message_to_dict
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.outputs import ChatGenerationChunk

from cerebras_ext.assembly import ChatDelta
from cerebras_ext.toolcalls import ToolCallDelta
from langchain_cerebras_ext import chunks, from_wire
from langchain_cerebras_ext.from_wire import ChunkBuilder, Style
from tests.langchain.service import Service, delta, end

PROVIDER = {"model_provider": "cerebras"}
V1 = {**PROVIDER, "output_version": "v1"}
CASES: dict[str, tuple[Any, ...]] = {
    "text": ("hé\u2028", "hé\u2028", {}, PROVIDER),
    "reasoning": ("", "", {"reasoning_content": "r"}, PROVIDER),
    "text block": ([{"type": "text", "text": "x", "index": "lc_text"}], "x", {}, V1),
    "reasoning block": (
        [{"type": "reasoning", "reasoning": "r", "index": "lc_reasoning"}], "", {"reasoning_content": "r"}, V1
    ),
}  # fmt: skip
ARGUMENTS = (
    "", "word ", "x", "{", '{"a', '{"a": ', '{"a": "b', '{"a": 1}', ' {"a": [1, {', "}", "]", '": 1}', "[1", "12",
    "null", "{]", '"', "\\", "\n", '{"a": "\n', "\u00a0{", "{}", "{} x", "tr", "NaN", '{"a": 1}}', "\ud83e",
)  # fmt: skip
for number, text in enumerate(ARGUMENTS):
    CASES[f"tool call {number}"] = ("", "", {}, PROVIDER, [chunks.tool_call_chunk(0, None, None, text)])
    CASES[f"start of a tool call {number}"] = ("", "", {}, PROVIDER, [chunks.tool_call_chunk(1, "c", "f", text)])
CASES["two tool calls"] = ("", "", {}, PROVIDER, [chunks.tool_call_chunk(n, str(n), "f", "{") for n in (0, 1)])
CASES["block of a tool call"] = (
    [{"type": "tool_call_chunk", "id": "c", "name": "f", "args": "{", "index": "lc_tc_0"}], "", {}, V1,
    [chunks.tool_call_chunk(0, "c", "f", "{")],
)  # fmt: skip
both = pytest.mark.parametrize("case", CASES)


def pair(case: str) -> tuple[ChatGenerationChunk, ChatGenerationChunk]:
    content, text, kwargs, metadata, *calls = copy.deepcopy(CASES[case])
    copied = chunks.copied_chunk(content, text, kwargs, metadata, *calls)
    content, text, kwargs, metadata, *calls = copy.deepcopy(CASES[case])
    return chunks.normal_chunk(content, kwargs, metadata, *calls), copied


def test_copies_are_in_use() -> None:
    assert chunks.COPIES


@both
def test_copy_has_every_part_of_a_normal_chunk(case: str) -> None:
    normal, copied = pair(case)
    assert type(copied) is ChatGenerationChunk
    assert type(copied.message) is AIMessageChunk
    assert copied == normal
    assert chunks.parts_of(copied) == chunks.parts_of(normal)
    for mine, theirs in ((copied, normal), (copied.message, normal.message)):
        assert mine.__dict__.keys() == type(theirs).model_fields.keys()
        assert list(mine.__dict__) == list(theirs.__dict__)
        for name in type(theirs).model_fields:
            assert type(getattr(mine, name)) is type(getattr(theirs, name)), name
            if name != "message":
                assert getattr(mine, name) == getattr(theirs, name), name
        assert mine.model_fields_set == theirs.model_fields_set
        assert mine.model_extra == theirs.model_extra
        for slot in ("__pydantic_extra__", "__pydantic_private__", "__pydantic_fields_set__"):
            assert getattr(mine, slot) == getattr(theirs, slot)
            assert type(getattr(mine, slot)) is type(getattr(theirs, slot))


@both
def test_copy_behaves_like_a_normal_chunk(case: str) -> None:
    normal, copied = pair(case)
    assert repr(copied) == repr(normal)
    assert copied.model_dump() == normal.model_dump()
    assert copied.model_dump(exclude_unset=True) == normal.model_dump(exclude_unset=True)
    assert copied.model_dump_json() == normal.model_dump_json()
    assert dumps(copied.message) == dumps(normal.message)
    assert message_to_dict(copied.message) == message_to_dict(normal.message)
    assert message_chunk_to_message(copied.message) == message_chunk_to_message(normal.message)
    assert copied.message.content_blocks == normal.message.content_blocks
    assert copied.message.text == normal.message.text
    for twin in (pickle.loads(pickle.dumps(copied)), copy.deepcopy(copied), copied.model_copy(deep=True)):
        assert chunks.parts_of(twin) == chunks.parts_of(normal)
    assert chunks.parts_of(copied + copied) == chunks.parts_of(normal + normal)
    assert chunks.parts_of(copied + normal) == chunks.parts_of(normal + copied)
    assert ChatGenerationChunk.model_validate(copied) == normal


@both
def test_copies_share_nothing_that_can_change(case: str) -> None:
    _, first = pair(case)
    untouched = pickle.dumps(pair(case)[1])
    first.message.id = "x"
    first.message.tool_calls.append({"type": "tool_call", "id": "1", "name": "f", "args": {}})  # type: ignore[attr-defined]
    first.message.tool_call_chunks.append({})  # type: ignore[attr-defined]
    first.message.invalid_tool_calls.append({})  # type: ignore[attr-defined]
    first.message.additional_kwargs["a"] = 1
    first.message.response_metadata["b"] = 1
    first.generation_info = {"c": 1}
    assert pickle.dumps(pair(case)[1]) == untouched


def test_attributes_of_a_copy_can_be_set_and_are_validated_as_ever() -> None:
    _, copied = pair("text")
    copied.message.id = "run-1"
    assert "id" in copied.message.model_fields_set
    assert copied.message.model_dump()["id"] == "run-1"
    assert "id" not in pair("text")[1].message.model_fields_set


@pytest.mark.parametrize("blocks", [False, True])
def test_builder_makes_the_same_chunks_either_way(blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> list[Any]:
        builder = ChunkBuilder(Style(blocks=blocks))
        calls = [ToolCallDelta(0, "c", "f", "{")]
        first = builder.feed_all([ChatDelta(0, "a", "r", calls, None, None, None, {})])
        return [
            chunks.parts_of(chunk)
            for chunk in (*first, *builder.feed_all([ChatDelta(0, "b", "", [], None, None, None, {})]))
        ]

    copied = made()
    monkeypatch.setattr(chunks, "COPIES", False)
    assert made() == copied
    assert len(copied) == 4


def test_normal_chunks_are_made_where_copies_would_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, values: Any) -> Any:
        twin = type(self)._real_copy(self, values)
        object.__setattr__(twin, "__pydantic_fields_set__", set())
        return twin

    monkeypatch.setattr(chunks.Copier, "_real_copy", chunks.Copier.copy, raising=False)
    monkeypatch.setattr(chunks.Copier, "copy", broken)
    assert not chunks._copies_are_equal()
    monkeypatch.setattr(chunks, "COPIES", False)
    events = [delta(reasoning="r"), delta(content="a"), end()]
    assert [chunk.text for chunk in Service(events).model().stream("hi")] == ["", "a", ""]
    assert from_wire.light_chunk is chunks.light_chunk
