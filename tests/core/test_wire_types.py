"""Types of what the service sends: everything may be missing, null, unknown or new, and nothing is lost."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from cerebras_ext import Client, types
from cerebras_ext.errors import RequestValidationError
from cerebras_ext.types import (
    ChatChunk,
    ChatResponse,
    CompletionChunk,
    CompletionRequest,
    CompletionResponse,
    ErrorBody,
    LogProbs,
    ModelList,
    TimeInfo,
    Usage,
)
from tests.support import MESSAGES, WAYS, WHOLE, Answer, Server, Way

OPEN = [ChatResponse, ChatChunk, CompletionResponse, CompletionChunk, ErrorBody, LogProbs, ModelList, TimeInfo, Usage]


@pytest.mark.parametrize("model", OPEN)
def test_missing_null_and_new_members_round_trip(model: Any) -> None:
    nulls = dict.fromkeys(name for name in model.model_fields if name not in ("choices", "data"))
    for value in ({}, nulls, {"new": {"deep": [1, None]}}, {**nulls, "new": None}):
        assert model.model_validate(value).to_dict() == value


@pytest.mark.parametrize("model", [ChatResponse, ChatChunk, CompletionResponse, CompletionChunk])
def test_null_choices_are_none_at_all(model: Any) -> None:
    assert model.model_validate({"choices": None}).choices == []


CHAT: dict[str, Any] = {
    "id": "c",
    "object": "chat.completion",
    "created": 1760000000.5,
    "model": "m",
    "system_fingerprint": "fp",
    "service_tier": "a_newer_tier",
    "service_tier_used": None,
    "choices": [
        {
            "index": 0,
            "finish_reason": "a_newer_reason",
            "message": {
                "role": "a_newer_role",
                "content": None,
                "reasoning": "r",
                "new": [1],
                "tool_calls": [
                    {"id": "t", "type": "a_newer_type", "function": {"name": "f", "arguments": "{", "new": 1}, "new": 2}
                ],
            },
            "logprobs": {"content": [{"token": "a", "logprob": -1, "bytes": None, "top_logprobs": [], "new": 3}]},
            "reasoning_logprobs": {"content": None, "refusal": []},
            "new": None,
        }
    ],
    "usage": {
        "prompt_tokens": 5,
        "completion_tokens": 32,
        "total_tokens": 37,
        "prompt_tokens_details": {"cached_tokens": 128, "image_tokens": 3, "new": 1},
        "completion_tokens_details": {
            "reasoning_tokens": 32,
            "accepted_prediction_tokens": 1,
            "rejected_prediction_tokens": 2,
        },
    },
    "time_info": {"queue_time": 0.1, "prompt_time": 0.2, "completion_time": 0.5, "total_time": 0.8, "created": 1},
}
TEXT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "length",
            "text": "a",
            "tokens": None,
            "logprobs": {
                "text_offset": [5],
                "token_logprobs": [None],
                "tokens": ["a"],
                "top_logprobs": [{"a": -1.0, "b": -2.0}],
            },
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "new": None},
}


@pytest.mark.parametrize("way", WHOLE, ids=str)
def test_a_full_answer_round_trips_through_the_client(server: Server, options: dict[str, Any], way: Way) -> None:
    body = CHAT if way.endpoint == "chat" else TEXT
    server.script = [Answer((json.dumps(body).encode(),))]
    response = way.ask(options).response
    assert response.to_dict() == body
    again = pickle.loads(pickle.dumps(response))
    assert again == response
    assert again.info == response.info


def test_the_first_answer_is_at_hand() -> None:
    response = ChatResponse.model_validate(CHAT)
    assert (response.text, response.reasoning, response.finish_reason) == ("", "r", "a_newer_reason")
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [("t", "f", "{")]
    empty = ChatResponse.model_validate({})
    assert (empty.text, empty.reasoning, empty.tool_calls, empty.finish_reason, empty.info) == ("", "", [], None, None)
    assert CompletionResponse.model_validate({}).text == ""
    assert ChatResponse.model_validate({"choices": [{"message": {"reasoning_content": "r"}}]}).reasoning == "r"


def test_a_budget_spent_on_reasoning_is_a_normal_answer(server: Server, options: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": "", "reasoning": "long"}
    body = {**CHAT, "choices": [{"index": 0, "finish_reason": "length", "message": message}]}
    server.script = [Answer((json.dumps(body).encode(),))]
    response = Client(**options).chat(model="m", messages=MESSAGES, max_tokens=32)
    assert (response.text, response.reasoning, response.finish_reason) == ("", "long", "length")
    assert response.usage is not None
    assert response.usage.reasoning_tokens == 32
    assert len(server.requests) == 1


def test_usage_is_read_from_both_places_and_never_invented() -> None:
    usage = Usage.model_validate(CHAT["usage"])
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.total_image_tokens) == (128, 32, 3)
    assert Usage.model_validate({"image_tokens": 0}).total_image_tokens == 0
    bare = Usage.model_validate({"prompt_tokens": 1})
    assert (bare.cached_tokens, bare.reasoning_tokens, bare.total_image_tokens, bare.completion_tokens) == (None,) * 4


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_answer_without_usage_has_none(server: Server, options: dict[str, Any], way: Way) -> None:
    pieces = [piece for piece in way.answer().pieces if isinstance(piece, bytes)]
    server.script = [Answer([piece.replace(b'"usage"', b'"unused"') for piece in pieces])]
    response = way.ask(options).response
    assert response.usage is None
    assert "usage" not in response.to_dict()


def test_speed_needs_all_of_its_numbers() -> None:
    time_info = TimeInfo(completion_time=0.5)
    assert time_info.tokens_per_second(Usage(completion_tokens=32)) == 64
    assert time_info.tokens_per_second(None) is None
    assert time_info.tokens_per_second(Usage()) is None
    assert TimeInfo(completion_time=0).tokens_per_second(Usage(completion_tokens=1)) is None
    assert TimeInfo().tokens_per_second(Usage(completion_tokens=1)) is None


def test_null_text_and_raw_tokens_of_a_completion() -> None:
    choice = CompletionResponse.model_validate({"choices": [{"index": 0, "text": None, "tokens": [1, 2]}]}).choices[0]
    assert (choice.text, choice.tokens) == ("", [1, 2])


@pytest.mark.parametrize("is_async", [False, True])
def test_several_answers_come_back_in_order_with_one_usage(
    server: Server, options: dict[str, Any], is_async: bool
) -> None:
    way = next(way for way in WHOLE if way.endpoint == "chat" and way.is_async is is_async)
    choices = [{"index": n, "finish_reason": "stop", "message": {"content": str(n)}} for n in range(2)]
    server.script = [Answer((json.dumps({"choices": choices, "usage": {"total_tokens": 9}}).encode(),))]
    response = way.ask(options, n=2).response
    assert [choice.message.content for choice in response.choices] == ["0", "1"]
    assert response.usage.total_tokens == 9


def test_names_of_the_types_are_exported_and_documented() -> None:
    for name in types.__all__:
        exported = getattr(types, name)
        assert not isinstance(exported, type) or exported.__doc__, name


@pytest.mark.parametrize(("prompt", "place"), [([1, -2], "prompt.1"), ([[1], [3, -1]], "prompt.1.1")])
def test_a_negative_token_id_is_refused_at_its_place(prompt: Any, place: str) -> None:
    with pytest.raises(RequestValidationError, match=rf"^{place}: .* greater than or equal to 0"):
        CompletionRequest(model="m", prompt=prompt)


def test_token_ids_may_be_large_and_are_bounded_in_the_schema() -> None:
    assert CompletionRequest(model="m", prompt=[2**70]).prompt == [2**70]
    ids = CompletionRequest.model_json_schema()["properties"]["prompt"]["anyOf"][2]
    assert ids == {"items": {"minimum": 0, "type": "integer"}, "type": "array"}
