"""From chat chunks to deltas and the whole answer: text, reasoning, usage, log probabilities, odd chunks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext.assembly import ChatAssembler, ChatDelta
from cerebras_ext.types import ChatResponse


def chunk(delta: dict[str, Any] | None = None, **choice: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta or {}, **choice}]}


def assemble(*chunks: dict[str, Any], choices: int = 1) -> tuple[list[ChatDelta], ChatResponse]:
    assembler = ChatAssembler(choices)
    deltas = [delta for chunk in chunks for delta in assembler.feed(json.loads(json.dumps(chunk)))]
    return deltas, assembler.response()


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def test_text_and_reasoning_grow_apart_and_may_come_together() -> None:
    deltas, response = assemble(
        chunk({"role": "assistant"}),
        chunk({"content": "a", "reasoning": "r"}),
        chunk({"reasoning": "s"}),
        chunk({"content": "b"}),
        chunk({"content": "", "reasoning": None}),
        chunk({}, finish_reason="stop"),
    )
    assert [(delta.content, delta.reasoning, delta.finish_reason) for delta in deltas] == [
        ("a", "r", None),
        ("", "s", None),
        ("b", "", None),
        ("", "", "stop"),
    ]
    assert (response.text, response.reasoning, response.finish_reason) == ("ab", "rs", "stop")


@pytest.mark.parametrize("spelling", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_under_both_names_and_kept_as_reasoning(spelling: str) -> None:
    deltas, response = assemble(chunk({spelling: "r"}), chunk({spelling: "s"}, finish_reason="stop"))
    assert [delta.reasoning for delta in deltas] == ["r", "s"]
    assert response.to_dict()["choices"][0]["message"] == {"role": "assistant", "reasoning": "rs"}


def test_reasoning_under_both_names_at_once_is_taken_once() -> None:
    assert assemble(chunk({"reasoning": "r", "reasoning_content": "r"}))[1].reasoning == "r"


def test_reasoning_is_never_promoted_to_text() -> None:
    response = assemble(chunk({"reasoning": "42"}), chunk({"content": None}, finish_reason="stop"))[1]
    assert (response.text, response.reasoning) == ("", "42")


def test_think_tags_in_text_are_text() -> None:
    response = assemble(chunk({"content": "<think>a</think>b"}, finish_reason="stop"))[1]
    assert (response.text, response.reasoning) == ("<think>a</think>b", "")


ODD = [
    {"choices": None},
    {"id": "c"},
    {},
    {"choices": []},
    {"choices": [None]},
    {"choices": [{"index": 0}]},
    {"choices": [{"index": 0, "delta": None}]},
    {"choices": [{"delta": {}}]},
    {"choices": [{"index": None, "delta": {"content": None}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": None}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [None]}}]},
    {"choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}]},
    {"usage": None, "time_info": None, "id": None, "model": None},
]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
@pytest.mark.parametrize("place", range(4))
def test_chunks_without_choices_or_with_nulls_lose_nothing(odd: dict[str, Any], place: int) -> None:
    chunks = [
        chunk({"content": "a"}),
        chunk({"content": "b"}),
        chunk({}, finish_reason="stop") | {"usage": usage(1, 2)},
    ]
    deltas, response = assemble(*chunks[:place], odd, *chunks[place:])
    assert (response.text, response.finish_reason, response.id, response.model) == ("ab", "stop", "c", "m")
    assert response.usage is not None
    assert response.usage.total_tokens == 3
    assert [delta.content for delta in deltas] == ["a", "b", ""]


def test_usage_of_a_chunk_without_choices_is_used() -> None:
    response = assemble(
        chunk({"content": "a"}, finish_reason="stop"),
        {"choices": [], "usage": usage(3, 2), "time_info": {"queue_time": 0.5}},
    )[1]
    assert response.to_dict()["usage"] == usage(3, 2)
    assert response.time_info is not None
    assert response.time_info.queue_time == 0.5


def test_the_last_usage_counts_and_is_never_summed() -> None:
    response = assemble(
        chunk({"content": "a"}) | {"usage": usage(10, 1)},
        chunk({"content": "b"}) | {"usage": usage(10, 2)},
        chunk({}, finish_reason="stop") | {"usage": usage(10, 3)},
        {"choices": [], "usage": None},
    )[1]
    assert response.to_dict()["usage"] == usage(10, 3)


def test_without_usage_there_is_none_and_nothing_is_invented() -> None:
    response = assemble(chunk({"content": "a"}, finish_reason="stop"))[1]
    assert response.usage is None
    assert "usage" not in response.to_dict()


def test_a_repeated_finish_reason_is_one() -> None:
    last = chunk({}, finish_reason="stop") | {"usage": usage(10, 5), "system_fingerprint": "fp"}
    deltas, response = assemble(chunk({"content": "a"}), last, last)
    assert [delta.finish_reason for delta in deltas] == [None, "stop"]
    assert (response.finish_reason, response.system_fingerprint, response.model) == ("stop", "fp", "m")
    assert response.to_dict()["usage"] == usage(10, 5)


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls", "a_newer_one"])
def test_any_finish_reason_is_kept(reason: str) -> None:
    assert assemble(chunk({"content": "a"}, finish_reason=reason))[1].finish_reason == reason


def logprob(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": [97], "top_logprobs": []}


def test_log_probabilities_of_text_and_of_reasoning_are_concatenated_in_order() -> None:
    deltas, response = assemble(
        chunk({"reasoning": "r"}, reasoning_logprobs={"content": [logprob("r")]}),
        chunk({"content": "a"}, logprobs={"content": [logprob("a")], "refusal": None}),
        chunk({"content": "b"}, logprobs={"content": [logprob("b")]}, reasoning_logprobs={"content": [logprob("s")]}),
        chunk({}, finish_reason="stop", logprobs={"content": None}),
    )
    choice = response.to_dict()["choices"][0]
    assert choice["logprobs"] == {"content": [logprob("a"), logprob("b")], "refusal": None}
    assert choice["reasoning_logprobs"] == {"content": [logprob("r"), logprob("s")]}
    assert deltas[2].logprobs == {"content": [logprob("b")]}
    assert deltas[2].reasoning_logprobs == {"content": [logprob("s")]}


def test_the_deltas_of_log_probabilities_are_not_touched_by_later_ones() -> None:
    deltas, response = assemble(
        chunk({"content": "a"}, logprobs={"content": [logprob("a")]}),
        chunk({"content": "b"}, logprobs={"content": [logprob("b")]}),
    )
    assert [delta.logprobs for delta in deltas] == [{"content": [logprob("a")]}, {"content": [logprob("b")]}]
    assert response.choices[0].logprobs is not None


def test_several_answers_are_kept_apart_and_all_must_end() -> None:
    assembler = ChatAssembler(2)
    assembler.feed({"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "x"}}]})
    assembler.feed({"choices": [{"index": 1, "delta": {"content": "y"}, "finish_reason": "stop"}]})
    assert not assembler.complete
    assembler.feed({"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "length"}]})
    assert assembler.complete
    response = assembler.response()
    assert [(choice.index, choice.message and choice.message.content) for choice in response.choices] == [
        (0, "ab"),
        (1, "xy"),
    ]
    assert [choice.finish_reason for choice in response.choices] == ["length", "stop"]


def test_unknown_members_are_kept_at_every_depth() -> None:
    response = assemble(
        {**chunk({"content": "a", "new_text": "x", "new_list": [1]}, new_in_choice=1), "new_at_top": {"a": 1}},
        {**chunk({"new_text": "y", "new_list": [2]}, new_in_choice=2, finish_reason="stop"), "new_at_top": {"b": 2}},
    )[1].to_dict()
    assert response["new_at_top"] == {"b": 2}
    assert response["choices"][0]["new_in_choice"] == 2
    assert response["choices"][0]["message"] == {
        "role": "assistant",
        "content": "a",
        "new_text": "xy",
        "new_list": [1, 2],
    }


def test_service_tier_time_info_and_fingerprint_reach_the_answer() -> None:
    last = {"service_tier": "auto", "service_tier_used": "flex", "system_fingerprint": "fp", "created": 1.5}
    response = assemble(chunk({"content": "a"}), chunk({}, finish_reason="stop") | last)[1]
    assert {name: response.to_dict()[name] for name in last} == last


def test_an_unfinished_answer_is_not_complete() -> None:
    assembler = ChatAssembler()
    assembler.feed(chunk({"content": "a"}))
    assert not assembler.complete
    assert assembler.response().finish_reason is None


@pytest.mark.parametrize("name", ["content", "reasoning"])
@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, True], ids=repr)
def test_text_that_is_none_is_never_handed_out(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} is no text but {type(value).__name__}"):
        ChatAssembler().feed(chunk({name: value}))
