"""From completion chunks to deltas and the whole answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext import CompletionResponse
from cerebras_ext.assembly import CompletionAssembler, CompletionDelta, deltas_of_chat, deltas_of_completion
from cerebras_ext.body import number_of_choices
from cerebras_ext.types import ChatResponse


def chunk(text: str | None = None, **choice: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "text": text, **choice}]}


def assemble(*chunks: dict[str, Any], choices: int = 1) -> tuple[list[CompletionDelta], CompletionResponse]:
    assembler = CompletionAssembler(choices)
    deltas = [delta for chunk in chunks for delta in assembler.feed(json.loads(json.dumps(chunk)))]
    return deltas, assembler.response()


USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_text_grows_and_the_end_is_told_once() -> None:
    last = chunk("", finish_reason="stop") | {"usage": USAGE, "time_info": {"total_time": 1.0}}
    deltas, response = assemble(chunk("a"), chunk("b"), last, last)
    assert [(delta.text, delta.finish_reason) for delta in deltas] == [("a", None), ("b", None), ("", "stop")]
    assert response.to_dict() == {
        "id": "c",
        "model": "m",
        "object": "text_completion",
        "usage": USAGE,
        "time_info": {"total_time": 1.0},
        "choices": [{"index": 0, "text": "ab", "finish_reason": "stop"}],
    }


ODD = [
    {"choices": None},
    {},
    {"choices": []},
    {"choices": [None]},
    {"choices": [{"index": 0}]},
    {"choices": [{"index": None, "text": None, "tokens": None, "logprobs": None, "finish_reason": None}]},
    {"usage": None, "id": None},
]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
@pytest.mark.parametrize("place", range(4))
def test_chunks_without_choices_or_with_nulls_lose_nothing(odd: dict[str, Any], place: int) -> None:
    chunks = [chunk("a"), chunk("b"), chunk("", finish_reason="stop") | {"usage": USAGE}]
    deltas, response = assemble(*chunks[:place], odd, *chunks[place:])
    assert (response.text, response.finish_reason, response.id) == ("ab", "stop", "c")
    assert response.to_dict()["usage"] == USAGE
    assert [delta.text for delta in deltas] == ["a", "b", ""]


def test_raw_tokens_are_collected_and_text_stays_empty() -> None:
    deltas, response = assemble(chunk(None, tokens=[1, 2]), chunk(None, tokens=[3], finish_reason="stop"))
    assert [delta.tokens for delta in deltas] == [[1, 2], [3]]
    assert (response.text, response.choices[0].tokens) == ("", [1, 2, 3])


def logprobs(token: str, offset: int) -> dict[str, Any]:
    return {"text_offset": [offset], "token_logprobs": [-0.5], "tokens": [token], "top_logprobs": [{token: -0.5}]}


def test_parallel_lists_of_log_probabilities_are_concatenated() -> None:
    deltas, response = assemble(
        chunk("a", logprobs=logprobs("a", 5)), chunk("b", logprobs=logprobs("b", 6), finish_reason="stop")
    )
    assert response.to_dict()["choices"][0]["logprobs"] == {
        "text_offset": [5, 6],
        "token_logprobs": [-0.5, -0.5],
        "tokens": ["a", "b"],
        "top_logprobs": [{"a": -0.5}, {"b": -0.5}],
    }
    assert deltas[0].logprobs == logprobs("a", 5)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"prompt": "a"}, 1),
        ({"prompt": ["a", "b"]}, 2),
        ({"prompt": [1, 2, 3]}, 1),
        ({"prompt": [[1], [2], [3]]}, 3),
        ({"prompt": ["a", "b"], "n": 3}, 6),
        ({"messages": [], "n": 2}, 2),
        ({"prompt": [], "n": None}, 1),
    ],
)
def test_as_many_answers_are_awaited_as_were_asked_for(body: dict[str, Any], expected: int) -> None:
    assert number_of_choices(body) == expected


def test_several_prompts_are_kept_apart_and_all_must_end() -> None:
    assembler = CompletionAssembler(2)
    assembler.feed({"choices": [{"index": 1, "text": "x", "finish_reason": "stop"}, {"index": 0, "text": "a"}]})
    assert not assembler.complete
    assembler.feed({"choices": [{"index": 0, "text": "b", "finish_reason": "length"}]})
    assert assembler.complete
    assert [(choice.index, choice.text) for choice in assembler.response().choices] == [(0, "ab"), (1, "x")]


def test_unknown_members_are_kept() -> None:
    response = assemble({**chunk("a", new=[1]), "other": 1}, chunk("b", new=[2], finish_reason="stop"))[1].to_dict()
    assert (response["choices"][0]["new"], response["other"]) == ([1, 2], 1)


def test_a_whole_completion_becomes_one_delta_a_choice() -> None:
    response = CompletionResponse.model_validate(
        {
            "choices": [
                {"index": 0, "text": "a", "finish_reason": "stop", "logprobs": logprobs("a", 0)},
                {"index": 1, "text": None, "tokens": [7], "finish_reason": "length"},
            ]
        }
    )
    first, second = deltas_of_completion(response)
    assert (first.index, first.text, first.tokens, first.finish_reason, first.logprobs) == (
        0,
        "a",
        None,
        "stop",
        logprobs("a", 0),
    )
    assert (second.index, second.text, second.tokens, second.finish_reason) == (1, "", [7], "length")


def test_a_whole_chat_answer_becomes_one_delta_a_choice() -> None:
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = ChatResponse.model_validate(
        {
            "choices": [
                {"index": 0, "finish_reason": "tool_calls", "message": {"reasoning": "r", "tool_calls": [call, call]}},
                {"index": 1, "finish_reason": "stop", "message": {"content": "b"}},
                {"index": 2, "message": None},
            ]
        }
    )
    first, second, third = deltas_of_chat(response)
    assert (first.content, first.reasoning, first.finish_reason) == ("", "r", "tool_calls")
    assert [(c.index, c.id, c.name, c.arguments) for c in first.tool_calls] == [
        (0, "t", "f", "{}"),
        (1, "t", "f", "{}"),
    ]
    assert (second.index, second.content, third.content) == (1, "b", "")


@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, True], ids=repr)
def test_text_that_is_none_is_never_handed_out(value: Any) -> None:
    with pytest.raises(TypeError, match=f"text is no text but {type(value).__name__}"):
        CompletionAssembler().feed({"choices": [{"index": 0, "text": value}]})
    with pytest.raises(TypeError, match="tokens is no list"):
        CompletionAssembler().feed({"choices": [{"index": 0, "text": "", "tokens": {"a": 1}}]})
