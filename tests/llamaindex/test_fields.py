"""Every field of the chat request reaches the wire as constructor field, `additional_kwargs` entry and call option."""

from __future__ import annotations

from typing import Any

import pytest

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.types import ChatRequest
from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.scripted import PATHS, STREAMS, ask, both, last, scripted

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": False}}

VALUES: dict[str, Any] = {
    "clear_thinking": False,
    "disable_reasoning": True,
    "extra_body": {"new_field": {"a": None}},
    "frequency_penalty": 0.5,
    "logit_bias": {"7": -1.0},
    "logprobs": True,
    "max_completion_tokens": 9,
    "max_tokens": 9,
    "min_completion_tokens": 2,
    "min_tokens": 2,
    "model_parameters": {"a": 1},
    "n": 1,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": -0.5,
    "prompt_cache_key": "k",
    "reasoning_effort": "low",
    "reasoning_format": "parsed",
    "response_format": SCHEMA,
    "seed": 0,
    "service_tier": "flex",
    "stop": ["a", "b"],
    "stream_options": {"include_usage": True},
    "temperature": 0.0,
    "tool_choice": "required",
    "tools": [TOOL],
    "top_logprobs": 3,
    "top_p": 0.0,
    "user": "u",
}
NEEDS: dict[str, dict[str, Any]] = {
    "parallel_tool_calls": {"tools": [TOOL]},
    "tool_choice": {"tools": [TOOL]},
    "top_logprobs": {"logprobs": True},
}
DECIDED_ELSEWHERE = {"model", "messages", "stream"}
ANSWER = both({"content": "a"}, {"content": "a"})


def expected(name: str) -> dict[str, Any]:
    if name == "extra_body":
        return {"new_field": {"a": None}}
    return {"max_completion_tokens" if name == "max_tokens" else name: VALUES[name]}


def test_every_field_has_a_value_here() -> None:
    assert VALUES.keys() == ChatRequest.model_fields.keys() - DECIDED_ELSEWHERE


def test_every_request_field_is_a_constructor_field_with_its_description() -> None:
    for name in VALUES:
        field, request = Cerebras.model_fields[name], ChatRequest.model_fields[name]
        assert field.default is None
        assert field.description == request.description


@pytest.mark.parametrize("level", ["constructor", "additional_kwargs", "call"])
@pytest.mark.parametrize("name", sorted(VALUES))
async def test_field_reaches_the_wire(name: str, level: str) -> None:
    given = {name: VALUES[name], **NEEDS.get(name, {})}
    fields = given if level == "constructor" else {"additional_kwargs": given} if level == "additional_kwargs" else {}
    llm, wire = scripted(ANSWER, **fields)
    for path in PATHS:
        await last(llm, path, ask(), **(given if level == "call" else {}))
    basic: dict[str, Any] = {"model": "some-model", "messages": [{"role": "user", "content": "q"}]}
    rest = NEEDS.get(name, {})
    plain = {**basic, **rest, **({} if name == "stream_options" else expected(name))}
    stream = {**basic, **rest, **expected(name), "stream": True}
    assert wire.bodies == [plain, plain, stream, stream]


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_sent_that_was_not_set(path: str) -> None:
    llm, wire = scripted(ANSWER)
    await last(llm, path, ask())
    assert wire.body.keys() - {"stream"} == {"model", "messages"}


@pytest.mark.parametrize("path", PATHS)
async def test_none_is_never_sent(path: str) -> None:
    llm, wire = scripted(ANSWER, **dict.fromkeys(VALUES))
    await last(llm, path, ask(), **dict.fromkeys(VALUES))
    assert wire.body.keys() - {"stream"} == {"model", "messages"}


@pytest.mark.parametrize("path", PATHS)
async def test_call_beats_additional_kwargs_beats_constructor(path: str) -> None:
    llm, wire = scripted(ANSWER, temperature=0.1, seed=1, top_p=0.1, additional_kwargs={"seed": 2, "top_p": 0.2})
    await last(llm, path, ask(), top_p=0.3, stop="x", model="other")
    body = wire.body
    assert (body["temperature"], body["seed"], body["top_p"], body["stop"], body["model"]) == (
        0.1,
        2,
        0.3,
        "x",
        "other",
    )


@pytest.mark.parametrize("path", PATHS)
async def test_both_names_of_the_limit_are_one(path: str) -> None:
    llm, wire = scripted(ANSWER, max_tokens=100)
    await last(llm, path, ask(), max_completion_tokens=5)
    assert wire.body["max_completion_tokens"] == 5
    assert "max_tokens" not in wire.body


def test_two_limits_that_differ_are_refused() -> None:
    with pytest.raises(RequestValidationError, match="one limit"):
        scripted(ANSWER)[0].chat(ask(), max_tokens=1, max_completion_tokens=2)


@pytest.mark.parametrize("path", PATHS)
async def test_unknown_option_is_refused_with_the_nearest_name(path: str) -> None:
    llm, wire = scripted(ANSWER)
    with pytest.raises(RequestValidationError, match="temperature"):
        await last(llm, path, ask(), temprature=1)
    assert wire.bodies == []


@pytest.mark.parametrize(
    "fields", [{"temperature": 3}, {"top_logprobs": 21}, {"stop": list("abcde")}, {"n": 0}], ids=str
)
@pytest.mark.parametrize("path", PATHS)
async def test_value_out_of_range_is_refused_before_sending(path: str, fields: dict[str, Any]) -> None:
    llm, wire = scripted(ANSWER)
    with pytest.raises(RequestValidationError, match=next(iter(fields))):
        await last(llm, path, ask(), **fields)
    assert wire.bodies == []


@pytest.mark.parametrize("name", ["stream", "messages"])
def test_what_the_method_decides_is_no_option(name: str) -> None:
    llm, wire = scripted(ANSWER, additional_kwargs={})
    llm.additional_kwargs[name] = True
    with pytest.raises(RequestValidationError, match=name):
        llm.chat(ask())
    assert wire.bodies == []


@pytest.mark.parametrize("path", PATHS)
async def test_stream_options_are_sent_with_a_stream_only(path: str) -> None:
    options = {"stream_options": {"include_usage": True}}
    llm, wire = scripted(ANSWER, additional_kwargs=options)
    await last(llm, path, ask())
    assert ("stream_options" in wire.body) is (path in STREAMS)
    assert llm.additional_kwargs == {"stream_options": {"include_usage": True}}


@pytest.mark.parametrize("path", PATHS)
async def test_call_options_are_headers_and_not_body(path: str) -> None:
    llm, wire = scripted(ANSWER, service_tier="flex", queue_threshold=500)
    await last(llm, path, ask(), queue_threshold=1500, extra_headers={"X-Trace": "t"}, timeout=3)
    headers = wire.requests[0].headers
    assert (headers["queue_threshold"], headers["x-trace"]) == ("1500", "t")
    assert wire.requests[0].extensions["timeout"]["read"] == 3
    assert wire.body.keys() - {"stream"} == {"model", "messages", "service_tier"}


@pytest.mark.parametrize("path", PATHS)
async def test_output_size_for_planning_is_not_a_limit_on_the_wire(path: str) -> None:
    llm, wire = scripted(ANSWER)
    assert llm.metadata.num_output == -1
    await last(llm, path, ask())
    assert "max_completion_tokens" not in wire.body


def test_function_calling_can_be_switched_off() -> None:
    assert scripted(ANSWER)[0].metadata.is_function_calling_model is True
    assert scripted(ANSWER, is_function_calling_model=False)[0].metadata.is_function_calling_model is False


def test_settings_survive_to_dict() -> None:
    values = {name: value for name, value in VALUES.items() if name != "max_tokens"}
    llm = Cerebras(model="m", replay_reasoning="off", split_think_tags=True, **values)
    assert Cerebras.from_dict(llm.to_dict()) == llm
