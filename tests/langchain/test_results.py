"""Results that are made as copies are equal to results made by the normal constructors, in every part."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, InvalidToolCall, message_to_dict
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult

from cerebras_ext.types import TimeInfo, Usage
from langchain_cerebras_ext import chunks, from_wire
from langchain_cerebras_ext.chunks import Answer
from tests.langchain.service import PATHS, Service, whole

META = {"model_provider": "cerebras", "model_name": "m", "token_usage": {"total_tokens": 3}}
USAGE: Any = {
    "input_tokens": 1,
    "output_tokens": 2,
    "total_tokens": 3,
    "input_token_details": {"cache_read": 0, "image": 256},
    "output_token_details": {"reasoning": 1},
}
CALLS = [tool_call(name="f", args={"a": [1, {"b": None}]}, id="c1"), tool_call(name="", args={}, id="c2")]
BROKEN = [InvalidToolCall(type="invalid_tool_call", id="c3", name="f", args='{"a', error=None)]
STOP = {"finish_reason": "stop"}
CASES: dict[str, list[Answer]] = {
    "nothing": [Answer("", {}, {}, None, [], [], {})],
    "text": [Answer("hé\u2028", {}, {**META, **STOP}, USAGE, [], [], STOP)],
    "reasoning": [Answer("", {"reasoning_content": "r"}, META, None, [], [], STOP)],
    "tool calls": [Answer("", {}, META, USAGE, CALLS, [], STOP)],
    "broken calls": [Answer("t", {}, META, USAGE, CALLS, BROKEN, STOP)],
    "log probabilities": [Answer("t", {}, META, None, [], [], {**STOP, "logprobs": {"content": [{"token": "t"}]}})],
    "two": [Answer("a", {}, META, USAGE, [], [], STOP), Answer("b", {}, {}, None, CALLS, BROKEN, {})],
    "none": [],
}
cases = pytest.mark.parametrize("case", CASES)


def pair(case: str) -> tuple[ChatResult, ChatResult]:
    normal, copied = (
        make(copy.deepcopy(CASES[case]), copy.deepcopy(META)) for make in (chunks.normal_result, chunks.copied_result)
    )
    return normal, copied


def test_copies_are_in_use() -> None:
    assert chunks.COPIED_RESULTS


@cases
def test_copy_has_every_part_of_a_normal_result(case: str) -> None:
    normal, copied = pair(case)
    assert copied == normal
    assert chunks.parts_of_result(copied) == chunks.parts_of_result(normal)
    objects = [(copied, normal)]
    for mine, theirs in zip(copied.generations, normal.generations, strict=True):
        assert type(mine) is ChatGeneration
        assert type(mine.message) is AIMessage
        objects += [(mine, theirs), (mine.message, theirs.message)]  # type: ignore[list-item]
    for one, other in objects:
        assert list(one.__dict__) == list(other.__dict__)
        assert [type(value) for value in one.__dict__.values()] == [type(value) for value in other.__dict__.values()]
        for slot in ("__pydantic_extra__", "__pydantic_private__", "__pydantic_fields_set__"):
            assert getattr(one, slot) == getattr(other, slot)
            assert type(getattr(one, slot)) is type(getattr(other, slot))


@cases
def test_copy_behaves_like_a_normal_result(case: str) -> None:
    normal, copied = pair(case)
    assert repr(copied) == repr(normal)
    assert copied.model_dump_json() == normal.model_dump_json()
    assert copied.model_dump(exclude_unset=True) == normal.model_dump(exclude_unset=True)
    for twin in (pickle.loads(pickle.dumps(copied)), copy.deepcopy(copied), copied.model_copy(deep=True)):
        assert chunks.parts_of_result(twin) == chunks.parts_of_result(normal)
    for mine, theirs in zip(copied.generations, normal.generations, strict=True):
        assert dumps(mine) == dumps(theirs)
        assert message_to_dict(mine.message) == message_to_dict(theirs.message)
        assert mine.message.content_blocks == theirs.message.content_blocks
        assert mine.text == theirs.text


@cases
def test_copies_share_nothing_that_can_change(case: str) -> None:
    _, first = pair(case)
    untouched = pickle.dumps(pair(case)[1])
    for generation in first.generations:
        message: Any = generation.message
        message.id = "x"
        for values in (message.tool_calls, message.invalid_tool_calls):
            values.append({})
        for values in (message.additional_kwargs, message.response_metadata, generation.generation_info):
            values["a"] = 1
    first.generations.append(first)  # type: ignore[arg-type]
    assert first.llm_output is not None
    first.llm_output["c"] = 1
    assert pickle.dumps(pair(case)[1]) == untouched


@pytest.mark.parametrize("path", ["invoke", "ainvoke"])
async def test_a_call_has_the_same_message_either_way(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": '{"a'}},
    ]

    async def message() -> AIMessage:
        answered: AIMessage = await PATHS[path](
            Service(answer=whole({"content": "t", "tool_calls": calls})).model(), "q"
        )
        return answered.model_copy(update={"id": None})

    copied = await message()
    monkeypatch.setattr(chunks, "COPIED_RESULTS", False)
    assert dumps(await message()) == dumps(copied)
    assert [call["args"] for call in copied.tool_calls] == [{"a": 1}]
    assert [call["args"] for call in copied.invalid_tool_calls] == ['{"a']


def test_normal_results_are_made_where_copies_would_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    real = chunks.Copier.copy

    def broken(self: Any, attributes: Any) -> Any:
        twin = real(self, attributes)
        object.__setattr__(twin, "__pydantic_fields_set__", set())
        return twin

    def raising(self: Any, attributes: Any) -> Any:
        raise TypeError("another pydantic")

    for other in (broken, raising):
        monkeypatch.setattr(chunks.Copier, "copy", other)
        assert not chunks._results_are_equal()
    monkeypatch.setattr(chunks, "COPIED_RESULTS", False)
    assert Service(answer=whole({"content": "t"})).model().invoke("q").text == "t"


def test_a_copy_that_shares_with_the_template_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[Any] = []

    def sharing(answers: list[Answer], output: dict[str, Any]) -> ChatResult:
        result = chunks.normal_result(answers, output)
        message: Any = result.generations[1].message
        shared.append(message.__dict__["tool_calls"])
        message.__dict__["tool_calls"] = chunks._whole_message.values["tool_calls"]
        return result

    monkeypatch.setattr(chunks, "copied_result", sharing)
    assert not chunks._results_are_equal()
    assert shared == [[]]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"prompt_tokens": 1, "completion_tokens": None, "total_tokens": "3"},
        {"prompt_tokens_details": {"cached_tokens": 0, "audio": {"a": [1]}}, "completion_tokens_details": {}},
        {"completion_tokens_details": None, "new": {"x": [1.5, None]}, "other": "é"},
    ],
)
def test_counts_are_dumped_as_the_core_dumps_them(members: dict[str, Any]) -> None:
    usage = Usage.model_validate(members)
    assert from_wire._members(usage) == usage.to_dict()
    assert list(from_wire._members(usage)) == list(usage.to_dict())


@pytest.mark.parametrize(
    "members", [{"queue_time": 1, "total_time": 0.5}, {"created": 1.5, "x": 1}, {"queue_time": 1e999}]
)
def test_times_are_dumped_as_the_core_dumps_them(members: dict[str, Any]) -> None:
    times = TimeInfo.model_validate(members)
    assert from_wire._members(times) == times.to_dict()
